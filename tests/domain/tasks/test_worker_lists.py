"""A list of tasks or namespaces in a worker's metadata is refused, or means what it says."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.matching import first_mismatch
from windlass.domain.matching.shapes import Shape, can_run
from windlass.domain.tasks.worker_lists import LISTS, check_lists, check_own_lists, check_tasks
from windlass.domain.values.errors import InvalidInput

KNOWN = {"shell", "python", "render"}
texts = st.text(min_size=1, max_size=8).filter(str.isprintable)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.one_of(values, st.lists(texts)), texts)
def test_a_deny_list_is_refused_or_denies_what_it_names(value: object, other: str) -> None:
    metadata = {"tasks_denylist": value}
    with contextlib.suppress(InvalidInput):
        check_lists(metadata, "metadata")
        assert_denies(metadata, value, other)
        return
    if value is not None and not is_empty_or_texts(value):
        assert first_mismatch(other, (), (), metadata) is not None


def assert_denies(metadata: dict[str, object], value: object, other: str) -> None:
    names = value if isinstance(value, list) else [value]
    for name in (*names, other):
        assert (first_mismatch(name, (), (), metadata) is not None) == (name in names)


def is_empty_or_texts(value: object) -> bool:
    """Texts that are no names, such as an empty one, name no task."""
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(name, str) for name in value)
    )


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("value", [5, True, {"shell": 1}, ["shell", 5], [["shell"]], [""], "", 1.5])
def test_what_is_no_list_of_names_is_refused(key: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_lists({key: value}, "metadata")
    assert (refused.value.field, refused.value.got) == (f"metadata.{key}", value)


@pytest.mark.parametrize(
    ("key", "name", "hint"),
    [
        ("tasks_denylist", "shel", "did you mean shell?"),
        ("tasks_denylist", "Shell", "did you mean shell?"),
        ("tasks_denylist", "anything else", ""),
        ("tasks_allowlist", "Shell", "did you mean shell?"),
        ("tasks_allowlist", "anything else", None),
        ("tasks_denylist", "render", None),
    ],
)
def test_a_task_to_deny_must_be_known(key: str, name: str, hint: str | None) -> None:
    metadata = {key: ["python", name]}
    if hint is None:
        check_tasks(metadata, KNOWN, "metadata")
        return
    with pytest.raises(InvalidInput) as refused:
        check_tasks(metadata, KNOWN, "metadata")
    found = refused.value
    assert (found.field, found.got, found.hint) == (f"metadata.{key}", name, hint)


def test_a_worker_may_deny_tasks_that_only_it_knows_but_not_misspell_others() -> None:
    check_own_lists({"tasks_denylist": ["mine"], "tasks_allowlist": ["mine", "shell"]}, "metadata")
    with pytest.raises(InvalidInput, match="did you mean ffmpeg"):
        check_own_lists({"tasks_denylist": ["fmpeg"]}, "metadata")


def test_a_star_stands_for_all_namespaces() -> None:
    assert can_run(Shape("team", "q", "shell"), {"namespaces": ["*"]}) is None
    assert can_run(Shape("team", "q", "shell"), {"namespaces": ["default"]}) is not None
