"""Workflows as DOT and Mermaid."""

from windlass.workflows.expansion import expand
from windlass.workflows.graph import Edge, Graph, as_dot, as_mermaid, graph_of_requests


def graph(**jobs: object) -> Graph:
    workflow, made = expand({"name": 'a "b"', "jobs": jobs}, {})
    return graph_of_requests(workflow.name, made)


def test_boxes_and_edges_of_both_kinds() -> None:
    drawn = graph(
        a={"run": ["x"]}, b={"run": ["x"], "after": "a"}, c={"run": ["x"], "after_any": "a"}
    )
    assert as_dot(drawn) == "\n".join(
        [
            'digraph "a \\"b\\"" {',
            "  rankdir=LR;",
            "  node [shape=box];",
            '  n0 [label="a"];',
            '  n1 [label="b"];',
            '  n2 [label="c"];',
            "  n0 -> n1;",
            "  n0 -> n2 [style=dashed];",
            "}",
        ]
    )
    assert as_mermaid(drawn) == "\n".join(
        [
            "flowchart LR",
            '  n0["a"]',
            '  n1["b"]',
            '  n2["c"]',
            "  n0 --> n1",
            "  n0 -.-> n2",
        ]
    )


def test_many_jobs_alike_are_one_box() -> None:
    many = {"run": ["x"], "count": 1000}
    drawn = graph(a=many, b={**many, "after": "a[*]"}, c={"run": ["x"], "after": "b"})
    assert [(box.name, box.jobs) for box in drawn.boxes] == [("a", 1000), ("b", 1000), ("c", 1)]
    assert drawn.edges == [Edge("a", "b"), Edge("b", "c")]
    assert '[label="a × 1000"]' in as_dot(drawn)


def test_jobs_from_before_get_a_box_too() -> None:
    drawn = graph(a={"run": ["x"], "after": 17})
    assert [box.name for box in drawn.boxes] == ["a", "17"]


def test_signs_of_the_languages_do_not_get_through() -> None:
    name = '"]; x-->y; <b> & #quot;'
    drawn = graph(**{name.replace("]", ")"): {"run": ["x"]}})
    (line,) = [line for line in as_mermaid(drawn).splitlines() if line.startswith("  n0")]
    assert line == '  n0["#34;); x--#62;y; #60;b#62; #38; #35;quot;"]'
    assert '[label="\\"); x-->y; <b> & #quot;"]' in as_dot(drawn)
