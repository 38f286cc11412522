"""What would let a job run: metadata that meets every clause, and the nearest worker."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.explain.reasons import Group, Matcher, Obstacle, entries
from windlass.domain.explain.smallest_change import nearest, satisfied, steps_for
from windlass.domain.matching.clauses import canonical_requires, canonical_resources
from windlass.domain.matching.shapes import Shape, can_run
from windlass.domain.matching.workers import WorkerStatus

GIB = 1024**3
ONLINE = int(WorkerStatus.ONLINE)

clauses = st.sampled_from(
    ["memory>=4GiB", "memory>16GiB", "memory<64GiB", "cpus>2", "cpus<=8", "zone==eu", "zone!=us",
     "zone in eu,us", "tool:version matches >=5,<7", "tool:version matches 6.*",
     "tool:version matches !=6.1", "system:architectures has arm64", "docker:available==true",
     "docker:available!=true", "label has 7"]
)  # fmt: skip
values = st.sampled_from(
    [None, 0, 3, 9, 8 * GIB, 1.5, True, False, "eu", "us", "6.1", "4.4", "odd", ["amd64"], [], [7]]
)
keys = st.sampled_from(
    ["system:memory", "system:cpus", "zone", "tool:version", "system:architectures",
     "docker:available", "label", "resource:tokens"]
)  # fmt: skip
lists = st.dictionaries(
    st.sampled_from(["tasks_denylist", "tasks_allowlist", "namespaces"]),
    st.lists(st.sampled_from(["shell", "other", "default"]), max_size=2),
)


@given(
    requires=st.lists(clauses, max_size=3, unique_by=lambda text: text.split()[0][:5]),
    resources=st.dictionaries(st.sampled_from(["tokens", "disk"]), st.integers(1, 5)),
    metadata=st.dictionaries(keys, values),
    listed=lists,
)
def test_what_is_said_to_satisfy_a_shape_does(
    requires: list[str], resources: dict[str, int], metadata: dict[str, Any], listed: dict[str, Any]
) -> None:
    shape = Shape(
        "default", "default", "shell", canonical_requires(requires), canonical_resources(resources)
    )
    have = {**metadata, **listed}
    assert can_run(shape, {**have, **satisfied(shape, have)}) is None
    assert can_run(shape, satisfied(shape, {})) is None


@given(metadata=st.lists(st.dictionaries(keys, values), max_size=6), requires=st.lists(clauses))
def test_what_is_remembered_of_a_worker_holds_for_those_like_it(
    metadata: list[dict[str, Any]], requires: list[str]
) -> None:
    shape = Shape("default", "default", "shell", canonical_requires(requires))
    matcher = Matcher(shape)
    for said in metadata:
        fresh = Matcher(shape).obstacles(said)
        assert matcher.obstacles(said) == fresh
        assert (not fresh) == (can_run(shape, said) is None)


def group(*names: str, status: int = ONLINE, **obstacles: str) -> Group:
    found = tuple(Obstacle(kind, kind, key, "no", key) for kind, key in obstacles.items())
    return Group(found, status, {}, list(range(len(names))), list(names))


def test_what_a_command_undoes_is_nearer_than_what_takes_a_machine() -> None:
    disabled = group("off", status=int(WorkerStatus.DISABLED), status_="x")
    disabled = disabled._replace(obstacles=(Obstacle("status", "status", "", ""),))
    small = group("small", clause="system:memory")
    lost = disabled._replace(status=int(WorkerStatus.OFFLINE), names=["lost"])
    busy = group("busy", slots="slots")
    assert nearest([small, lost, busy, disabled]) == disabled
    assert nearest([small, lost, busy]) == busy
    assert nearest([small, lost]) == lost
    assert nearest([]) is None
    shape = Shape("default", "default", "shell")
    assert [step.action for step in steps_for(shape, disabled)] == ["enable_worker"]
    assert [step.action for step in steps_for(shape, lost)] == ["start_worker"]


def test_no_list_teaches_a_worker_a_task() -> None:
    """A list can only keep it from a task that it knows."""
    metadata = {"tasks_allowlist": ["python"]}
    for task, action in (("shell", "set_metadata"), ("nosuch", "add_worker")):
        shape = Shape("default", "default", task)
        found = group("w")._replace(obstacles=Matcher(shape).obstacles(metadata), metadata=metadata)
        (step,) = steps_for(shape, found)
        assert (step.action, f"install what brings task {task} on worker w" in step.text) == (
            action, action == "add_worker",
        )  # fmt: skip


def test_many_groups_are_told_by_their_clause() -> None:
    groups = [
        Group((Obstacle("clause", "memory>=4GiB", "memory ≥ 4GiB", f"{n}GiB"),), ONLINE, {}, [n],
              [f"w{n}"])
        for n in range(60)
    ]  # fmt: skip
    (entry,) = entries(groups)
    assert entry.count == 60
    assert entry.needs == "memory ≥ 4GiB"
    assert entry.has == "0GiB or similar"
    assert len(entries(groups[:50])) == 50
