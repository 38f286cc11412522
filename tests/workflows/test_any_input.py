"""Whatever a description contains, it is expanded or refused, and nothing else happens."""

from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from windlass.workflows.expansion import expand, expand_tree
from windlass.workflows.files import NoFiles
from windlass.workflows.format import JobFile, WorkflowFile
from windlass.workflows.graph import FORMATS, graph_of_requests
from windlass.workflows.nodes import Misdescribed
from windlass.workflows.reading import read_text

EXAMPLE = (
    Path(__file__).resolve().parents[2] / "examples" / "workflows" / "release.yaml"
).read_text()

words = st.sampled_from(
    ["a", "b", "a[*]", "a[0]", "true", "${{ index }}", "${{ parameters.x }}", "${{", "$${{ x }}",
     "${{ matrix.v }}", "5m", "", "x" * 300, "\ud800", "\x00", "high"]
)  # fmt: skip
scalars = st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | words
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def records(kind: type, inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(kind.__struct_fields__)  # type: ignore[attr-defined]
    return st.dictionaries(names, inner, max_size=4)


jobs = records(JobFile, values).map(lambda job: {"run": ["echo"], **job})
workflows = st.builds(
    lambda some, named: {"name": "w", **some, "jobs": named},
    records(WorkflowFile, values),
    st.dictionaries(words, jobs, max_size=3),
)


def refusal_of(text: str, parameters: dict[str, Any]) -> str | None:
    """Why a text is refused; None if it is a workflow."""
    try:
        expand_tree(read_text(text, "w.yaml"), parameters, NoFiles())
    except Misdescribed as refused:
        return str(refused)
    return None


@given(workflows, st.dictionaries(words, values, max_size=2))
def test_any_data_is_expanded_or_refused(
    description: dict[str, Any], parameters: dict[str, Any]
) -> None:
    try:
        workflow, made = expand(description, parameters)
    except Misdescribed:
        return
    for render in FORMATS.values():
        assert render(graph_of_requests(workflow.name, made))


@given(st.text(alphabet="-:[]{},&*!|>'\"#%@` \n\tax0$", max_size=60))
@example("a: &a\n  <<: *a\n")
@example("? {a: b}\n: c\n")
@example("&a : *a")
def test_any_text_is_refused_with_its_file(text: str) -> None:
    assert (refusal_of(text, {}) or "").startswith("w.yaml:")


@given(st.integers(0, len(EXAMPLE)), st.integers(0, 30), st.text(max_size=10))
def test_a_broken_file_is_read_or_refused(start: int, length: int, put: str) -> None:
    refusal = refusal_of(EXAMPLE[:start] + put + EXAMPLE[start + length :], {"version": "1"})
    assert refusal is None or refusal.startswith("w.yaml:")
