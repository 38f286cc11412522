"""What a job takes of a worker, in one canonical form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.clauses import canonical_resources, resource_key
from windlass.domain.values.errors import InvalidInput, shorten


def test_amounts_are_integers_sorted_by_name() -> None:
    resources = {"memory": "4GiB", "cpus": 2, "gpus": "1", "licenses": 3, "disk": 10}
    assert canonical_resources(resources) == (
        ("cpus", 2),
        ("disk", 10),
        ("gpus", 1),
        ("licenses", 3),
        ("memory", 4 * 1024**3),
    )


def test_needing_none_is_not_needing_it() -> None:
    assert canonical_resources({"gpus": 0, "cpus": 1}) == canonical_resources({"cpus": 1})


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("cpus", 1.5, "resources.cpus"),
        ("cpus", "two", "resources.cpus"),
        ("cpus", -1, "resources.cpus"),
        ("cpus", True, "resources.cpus"),
        ("cpus", None, "resources.cpus"),
        ("cpus", 2**64, "resources.cpus"),
        ("cpus", "9" * 30, "resources.cpus"),
        ("memory", "4 lots", "resources.memory"),
        ("memory", -1, "resources.memory"),
        ("", 1, "resources"),
        ("a b", 1, "resources"),
        ("a\0", 1, "resources"),
        ("x" * 101, 1, "resources"),
    ],
    ids=shorten,
)
def test_other_amounts_are_refused_by_name(name: str, value: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        canonical_resources({name: value})
    assert caught.value.field == field


def test_a_worker_states_what_it_has_under_a_key() -> None:
    assert resource_key("cpus") == "system:cpus"
    assert resource_key("memory") == "system:memory"
    assert resource_key("gpus") == "system:gpus"
    assert resource_key("licenses") == "resource:licenses"
    assert resource_key("os") == "resource:os"


@given(
    st.dictionaries(st.sampled_from(["cpus", "memory", "gpus", "tokens"]), st.integers(0, 2**62))
)
def test_the_canonical_form_is_stable(resources: dict[str, int]) -> None:
    once = canonical_resources(resources)
    assert canonical_resources(dict(once)) == once
    assert canonical_resources(dict(reversed(resources.items()))) == once
