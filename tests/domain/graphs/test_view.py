"""What is shown of any graph: bounded, without overlaps, left to right, and the same each time."""

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.domain.graphs.drawn import graph_of, graphs
from windlass.domain.graphs.graph import Graph, GraphBuilder
from windlass.domain.graphs.groups import FEW, stem_of
from windlass.domain.graphs.view import MAX_BOXES, Box, Levels, View, add_up, count_states

EXAMPLES = settings(max_examples=8, deadline=None)


def _opened(graph: Graph, steps: int, choose: int) -> tuple[list[str], View]:
    """Opens groups one by one, as somebody who looks around."""
    levels, opened = Levels(graph), list[str]()
    view = levels.view()
    for step in range(steps):
        groups = [box.part.id for box in view.boxes if box.part.is_group and not box.is_open]
        if not groups:
            break
        opened.append(groups[(choose + step) % len(groups)])
        view = levels.view(opened)
    return opened, view


def _overlap(a: Box, b: Box) -> bool:
    beside = a.x + a.width <= b.x or b.x + b.width <= a.x
    return not beside and a.y < b.y + b.height and b.y < a.y + a.height


@EXAMPLES
@given(graphs(), st.sampled_from([3, 1, 0]), st.integers(0, 99))
def test_no_two_boxes_overlap_and_each_is_inside_its_group(
    graph: Graph, steps: int, choose: int
) -> None:
    _, view = _opened(graph, steps, choose)
    by_id = {box.part.id: box for box in view.boxes}
    inside: dict[str, list[Box]] = {}
    for box in view.boxes:
        inside.setdefault(box.parent, []).append(box)
        if box.parent:
            around = by_id[box.parent]
            assert around.is_open
            assert around.x <= box.x
            assert around.y <= box.y
            assert box.x + box.width <= around.x + around.width
            assert box.y + box.height <= around.y + around.height
    for boxes in inside.values():
        for place, box in enumerate(boxes):
            assert not any(_overlap(box, other) for other in boxes[place + 1 :])


@EXAMPLES
@given(graphs(), st.sampled_from([3, 1, 0]), st.integers(0, 99))
def test_edges_lead_from_left_to_right(graph: Graph, steps: int, choose: int) -> None:
    _, view = _opened(graph, steps, choose)
    for edge in view.edges:
        needed, waiting = view.boxes[edge.needed], view.boxes[edge.waiting]
        assert not needed.is_open
        assert not waiting.is_open
        assert needed.x + needed.width < waiting.x


@EXAMPLES
@given(graphs(), st.sampled_from([3, 1, 0]), st.integers(0, 99))
def test_each_job_and_each_dependency_is_counted_once(
    graph: Graph, steps: int, choose: int
) -> None:
    _, view = _opened(graph, steps, choose)
    states = bytes(1 + number % 12 for number in range(len(graph)))
    counts = count_states(view.shown_in, states, len(view.boxes))
    total: Counter[int] = Counter()
    for box, count in zip(view.boxes, counts, strict=True):
        assert sum(count.values()) == (0 if box.is_open else len(box.part.members))
        total.update(count)
    assert total == Counter(states)
    for box, count in zip(view.boxes, add_up(view.boxes, counts), strict=True):
        assert sum(count.values()) == len(box.part.members)
    inside = sum(
        view.shown_in[number] == view.shown_in[other]
        for number in range(len(graph))
        for other in graph.needs_of(number)
    )
    assert view.edges_left_out == 0
    assert inside + sum(edge.jobs for edge in view.edges) == graph.edges


@EXAMPLES
@given(graphs(), st.sampled_from([3, 1, 0]), st.integers(0, 99))
def test_the_same_graph_is_drawn_the_same(graph: Graph, steps: int, choose: int) -> None:
    opened, view = _opened(graph, steps, choose)
    again = Levels(graph).view(opened)
    assert again.boxes == view.boxes
    assert again.edges == view.edges
    assert Levels(graph).view(opened[::-1]).boxes == view.boxes  # whatever was opened first


@EXAMPLES
@given(graphs(), st.sampled_from([1, 2, 0]), st.integers(0, 99))
def test_opening_a_group_moves_only_what_is_below_it_or_behind_it(
    graph: Graph, steps: int, choose: int
) -> None:
    opened, before = _opened(graph, steps, choose)
    groups = [box for box in before.boxes if box.part.is_group and not box.is_open]
    if not groups:
        return
    grown = groups[choose % len(groups)]
    after = {box.part.id: box for box in Levels(graph).view([*opened, grown.part.id]).boxes}
    moved = after[grown.part.id]
    more = round(moved.height - grown.height, 3)
    shifts = set[float]()
    for box in before.boxes:
        if box.parent != grown.parent:
            continue
        now = after[box.part.id]
        right = round((now.x - moved.x) - (box.x - grown.x), 3)
        down = round((now.y - moved.y) - (box.y - grown.y), 3)
        if box.x > grown.x:
            shifts.add(right)
            assert down == 0
        else:
            below = box.x == grown.x and box.y > grown.y
            assert (right, down) == (0, more if below else 0)
    assert len(shifts) <= 1
    assert all(shift >= 0 for shift in shifts)


@settings(max_examples=3, deadline=None)
@given(graphs(1_500), st.integers(0, 12), st.integers(0, 99))
def test_a_view_is_bounded_however_much_is_opened(graph: Graph, steps: int, choose: int) -> None:
    opened, view = _opened(graph, steps, choose)
    assert len(view.boxes) <= MAX_BOXES
    shown = {box.part.id for box in view.boxes if box.is_open}
    assert set(opened) - shown == set(view.left_closed)


def test_few_jobs_are_shown_one_by_one() -> None:
    graph = graph_of({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    view = Levels(graph).view()
    assert [box.part.label for box in view.boxes] == ["a", "b", "c", "d"]
    assert [box.part.layer for box in view.boxes] == [0, 1, 1, 2]
    assert len(view.edges) == 4


def test_jobs_of_one_layer_stand_in_one_column() -> None:
    tests = {f"{name}-check": ["fetch"] for name in "abcdefghijklmnopqrstuvwxyzäöüßABCDEFGH"}
    graph = graph_of({"fetch": [], **tests, "report": list(tests)})
    columns: dict[int, set[float]] = {}
    for box in Levels(graph).view().boxes:
        columns.setdefault(box.part.layer, set()).add(box.x)
    assert [len(found) for found in columns.values()] == [1, 1, 1]


@EXAMPLES
@given(graphs(), st.sampled_from([4, 2, 1, 0]), st.integers(0, 99))
def test_edges_touch_no_box_but_their_own_and_those_around(
    graph: Graph, steps: int, choose: int
) -> None:
    _, view = _opened(graph, steps, choose)
    _check_lines(view)


def test_edges_go_around_the_other_boxes_of_an_open_group() -> None:
    """Also where they come from its first layer, or lead to its last one."""
    chains = {f"step-{n}": ["begin", *([f"step-{n - 10}"] if n >= 10 else [])] for n in range(40)}
    view = Levels(graph_of({"begin": [], **chains, "end": list(chains)})).view(["n:step"])
    assert len({box.x for box in view.boxes if box.parent == "n:step"}) == 4
    _check_lines(view)


def _check_lines(view: View) -> None:
    by_id = {box.part.id: box for box in view.boxes}
    for edge in view.edges:
        needed, waiting = view.boxes[edge.needed], view.boxes[edge.waiting]
        assert edge.path[0] == (needed.x + needed.width, needed.y + needed.height / 2)
        assert edge.path[-1] == (waiting.x, waiting.y + waiting.height / 2)
        own = {needed.part.id, waiting.part.id}
        for one in (needed, waiting):
            while one.parent:
                own.add(one.parent)
                one = by_id[one.parent]
        others = [box for box in view.boxes if box.part.id not in own]
        for (x, y), (right, then) in pairwise(edge.path):
            assert x < right
            top, bottom = min(y, then), max(y, then)
            for box in others:
                beside = right <= box.x or box.x + box.width <= x
                assert beside or bottom < box.y or box.y + box.height < top


def test_many_jobs_are_grouped_by_what_their_names_have_in_common() -> None:
    builds = {f"build[{n}]": ["fetch"] for n in range(200)}
    tests = {f"test-{n}": [f"build[{n}]"] for n in range(200)}
    graph = graph_of({"fetch": [], **builds, **tests, "report": list(tests)})
    view = Levels(graph).view()
    drawn = [(box.part.label, box.part.kind, len(box.part.members)) for box in view.boxes]
    assert drawn == [
        ("fetch", "job", 1), ("build", "name", 200), ("test", "name", 200), ("report", "job", 1),
    ]  # fmt: skip
    assert [edge.jobs for edge in view.edges] == [200, 200, 200]
    opened = Levels(graph).view(["n:build"])
    parts = [box.part.label for box in opened.boxes if box.parent == "n:build"]
    assert parts == ["build[0] … build[119]", "build[120] … build[199]"]
    deeper = Levels(graph).view(["n:build/p:1-120"])  # opens those around it too
    assert sum(box.part.kind == "job" for box in deeper.boxes) == 2 + FEW


def test_a_column_of_similar_jobs_is_one_group_and_jobs_with_their_own_names_are_none() -> None:
    tests = {f"test-{n}": ["fetch"] for n in range(36)}
    folded = Levels(graph_of({"fetch": [], **tests, "report": list(tests)})).view()
    drawn = [(box.part.label, len(box.part.members)) for box in folded.boxes]
    assert drawn == [("fetch", 1), ("test", 36), ("report", 1)]
    inner = Levels(graph_of({"fetch": [], **tests})).view(["n:test"])
    assert sum(box.parent == "n:test" for box in inner.boxes) == 36
    own = {f"{one}{two}": ["fetch"] for one in "abcdef" for two in "uvwxyz"}
    assert len(Levels(graph_of({"fetch": [], **own})).view().boxes) == 37


def test_names_that_wait_for_each_other_in_a_circle_are_grouped_by_layer() -> None:
    ping = {f"{'ab'[n % 2]}-{n}": [f"{'ab'[(n - 1) % 2]}-{n - 1}"] if n else [] for n in range(300)}
    view = Levels(graph_of(ping)).view()
    assert {box.part.kind for box in view.boxes} == {"layers"}
    assert len(view.boxes) <= 60
    assert sum(len(box.part.members) for box in view.boxes) == 300


def test_a_job_is_revealed_by_opening_the_groups_around_it() -> None:
    graph = graph_of({f"m[{n}]": [] for n in range(500)} | {"last": []})
    view = Levels(graph).view(reveal=[graph.jobs[321]])
    assert any(box.part.label == "m[321]" and not box.part.is_group for box in view.boxes)
    assert len(Levels(graph).view(reveal=[999_999]).boxes) == 2  # unknown: as it is


def test_the_last_groups_asked_for_are_opened_and_the_others_named() -> None:
    graph = graph_of({f"{stem}[{n}]": [] for stem in "abcdefgh" for n in range(110)})
    groups = [f"n:{stem}" for stem in "abcdefgh"]
    view = Levels(graph).view([*groups, "n:unknown", "x", "n:a/p:9"])
    assert [box.part.id for box in view.boxes if box.is_open] == groups[-4:]
    assert set(view.left_closed) == set(groups[:4])


def test_a_retried_job_stands_for_the_one_it_replaced() -> None:
    builder = GraphBuilder()
    for job, name, needs in [(1, "a", []), (3, "c", [2]), (4, "b", [1]), (9, "x", [77])]:
        builder.add(job, name, stem_of(name), needs)
    builder.supersede(2, 4)
    graph = builder.build()
    assert list(graph.layers) == [0, 2, 1, 0]
    assert [list(graph.needs_of(n)) for n in range(4)] == [[], [2], [0], []]


def test_jobs_that_wait_in_a_circle_are_drawn_all_the_same() -> None:
    builder = GraphBuilder()
    for job, needs in [(1, [3]), (2, [1]), (3, [2]), (4, [3])]:
        builder.add(job, str(job), str(job), needs)
    graph = builder.build()
    assert sorted(graph.order) == [0, 1, 2, 3]
    assert graph.edges == 3


def test_boxes_are_wide_enough_for_names_that_differ_at_their_end() -> None:
    long = [f"windows: compile part {n}" for n in range(3)]
    boxes = Levels(graph_of({"fetch": [], **{name: ["fetch"] for name in long}})).view().boxes
    widths = {box.part.label: box.width for box in boxes}
    assert len(set(widths.values())) == 1, "boxes of a level have one width"
    assert widths[long[0]] > Levels(graph_of({"fetch": []})).view().boxes[0].width
    endless = Levels(graph_of({"x" * 500: []})).view().boxes[0]
    assert endless.width < 500
