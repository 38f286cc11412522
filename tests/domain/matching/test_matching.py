"""Which worker can run what, and what exactly is missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.clauses import (
    Clause,
    canonical_requires,
    canonical_resources,
    parse_clause,
    target,
)
from windlass.domain.matching.matching import (
    Mismatch,
    first_mismatch,
    merge_metadata,
    metadata_digest,
    mismatches,
)

GIB = 1024**3

WORKER: dict[str, object] = {
    "system:architectures": ["amd64", "i386"],
    "system:cpus": 8,
    "system:memory": 8 * GIB,
    "system:gpus": 0,
    "system:os": "linux",
    "ffmpeg:available": True,
    "ffmpeg:version": "6.1.1-3ubuntu5",
    "ffmpeg:encoders": ["libx264", "libx265"],
    "resource:licenses": 2,
}


def lacks(
    *requires: str | Clause,
    task: str = "shell",
    resources: dict[str, object] | None = None,
    metadata: dict[str, object] | None = None,
) -> Mismatch | None:
    return first_mismatch(
        task,
        canonical_requires(requires),
        canonical_resources(resources or {}),
        WORKER if metadata is None else metadata,
    )


# Metadata


def test_static_metadata_wins() -> None:
    dynamic = {"system:cpus": 8, "system:os": "linux"}
    assert merge_metadata(dynamic, {"system:cpus": 4}) == {"system:cpus": 4, "system:os": "linux"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values))
def test_the_digest_does_not_depend_on_the_order_of_keys(metadata: dict[str, object]) -> None:
    digest = metadata_digest(metadata)
    assert metadata_digest(dict(reversed(metadata.items()))) == digest
    assert len(digest) == 32
    assert metadata_digest({**metadata, "one:more": 1}) != digest


# The first filter


def test_denied_tasks_are_excluded() -> None:
    metadata: dict[str, object] = {"tasks_denylist": ["shell", "python"]}
    mismatch = lacks(metadata=metadata)
    assert mismatch is not None
    assert mismatch.key == "tasks_denylist"
    assert mismatch.text == "does not run task shell; it runs all tasks but shell, python"
    assert lacks(task="ffmpeg", metadata=metadata) is None


def test_an_allowlist_selects_when_it_is_set() -> None:
    metadata: dict[str, object] = {"tasks_allowlist": ["ffmpeg"]}
    mismatch = lacks(metadata=metadata)
    assert mismatch is not None
    assert mismatch.text == "does not run task shell; it runs only ffmpeg"
    assert lacks(task="ffmpeg", metadata=metadata) is None
    assert lacks(metadata={"tasks_allowlist": None}) is None
    assert lacks(metadata={"tasks_allowlist": []}) is not None


def test_a_task_in_both_lists_is_excluded() -> None:
    both: dict[str, object] = {"tasks_denylist": ["shell"], "tasks_allowlist": ["shell"]}
    mismatch = lacks(metadata=both)
    assert mismatch is not None
    assert mismatch.key == "tasks_denylist"


# The second filter


@pytest.mark.parametrize(
    ("clause", "held"),
    [
        ("os==linux", True),
        ("os==darwin", False),
        ("os!=linux", False),
        ("os!=darwin", True),
        ("os in darwin,linux", True),
        ("os in darwin,windows", False),
        ("cpus==8", True),
        ("cpus!=8", False),
        ("cpus>=8", True),
        ("cpus>8", False),
        ("cpus<=8", True),
        ("cpus<8", False),
        ("cpus>=7.5", True),
        ("gpus>=1", False),
        ("memory>=8GiB", True),
        ("memory>8GiB", False),
        ("memory==8GiB", True),
        ("memory in 4GiB,8GiB", True),
        ("system:architectures has i386", True),
        ("system:architectures has arm64", False),
        ("system:architectures in arm64,amd64", True),
        ("system:architectures != arm64", True),
        ("system:architectures != amd64", False),
        ("ffmpeg:available==true", True),
        ("ffmpeg:available==false", False),
        ("ffmpeg:available==1", False),
        ("ffmpeg:available>=1", False),
        ("ffmpeg:version matches >=5,<7", True),
        ("ffmpeg:version matches >=7", False),
        ("ffmpeg:version matches 6.*", True),
        ("ffmpeg:encoders has libx265", True),
        ("os>=1", False),
    ],
)
def test_a_clause_holds_or_not(clause: str, held: bool) -> None:
    assert (lacks(clause) is None) is held


@pytest.mark.parametrize("op", ["==1", ">=1", "<=1", ">1", "<1", " in 1", " has 1", " matches 1"])
def test_what_is_not_known_meets_nothing(op: str) -> None:
    nothing: list[dict[str, object]] = [{}, {"x": None}]
    for metadata in nothing:
        mismatch = lacks(f"x{op}", metadata=metadata)
        assert mismatch is not None
        assert mismatch.has == "no x"


def test_what_is_not_known_differs_from_everything() -> None:
    assert lacks("gpu:vendor!=nvidia", metadata={}) is None


def test_numbers_set_as_text_by_operators_count() -> None:
    metadata: dict[str, object] = {"system:memory": "8 GiB", "system:cpus": "8"}
    assert lacks("memory>=8GiB", "cpus>=8", "cpus==8", metadata=metadata) is None
    assert lacks("memory>=9GiB", metadata=metadata) is not None
    assert lacks("cpus>=1", metadata={"system:cpus": "many"}) is not None


def test_a_target_needs_its_architecture() -> None:
    assert lacks(target("amd64")) is None
    mismatch = lacks(target("arm64"))
    assert mismatch is not None
    assert mismatch.text == "needs arm64 among system:architectures, has amd64, i386"


# Resources


def test_resources_are_compared_with_what_the_worker_has() -> None:
    fits: dict[str, object] = {"cpus": 8, "memory": "8 GiB", "licenses": 2}
    assert lacks(resources=fits) is None
    for name, value in (("cpus", 9), ("memory", "9GiB"), ("gpus", 1), ("licenses", 3)):
        mismatch = lacks(resources={**fits, name: value})
        assert mismatch is not None
        assert mismatch.key in (f"system:{name}", f"resource:{name}")
    unknown = lacks(resources={"tokens": 1})
    assert unknown is not None
    assert unknown.text == "needs resource:tokens ≥ 1, has no resource:tokens"


def test_a_resource_nobody_needs_is_no_obstacle() -> None:
    assert lacks(resources={"gpus": 0, "tokens": 0}, metadata={}) is None


# What is said


def test_a_mismatch_reads_as_a_sentence() -> None:
    assert lacks("memory>=16GiB") == Mismatch(
        clause_text="memory>=16GiB", key="system:memory", needs="memory ≥ 16 GiB", has="8 GiB"
    )
    mismatch = lacks("memory>=16GiB")
    assert mismatch is not None
    assert mismatch.text == "needs memory ≥ 16 GiB, has 8 GiB"
    resource = lacks(resources={"cpus": 16})
    assert resource is not None
    assert (resource.clause_text, resource.text) == ("cpus=16", "needs cpus ≥ 16, has 8")


def test_sizes_that_look_alike_are_shown_in_bytes() -> None:
    mismatch = lacks("memory>=8GiB", metadata={"system:memory": 8 * GIB - 1})
    assert mismatch is not None
    assert mismatch.text == "needs memory ≥ 8 GiB, has 8589934591 bytes"


def test_all_mismatches_are_found_in_order_and_the_first_is_the_first() -> None:
    metadata = {**WORKER, "tasks_denylist": ["shell"], "tasks_allowlist": ["python"]}
    requires = canonical_requires(["os==darwin", "cpus>=16", "cpus>=2"])
    resources = canonical_resources({"gpus": 1, "cpus": 2})
    found = tuple(mismatches("shell", requires, resources, metadata))
    assert [mismatch.clause_text for mismatch in found] == [
        "tasks_denylist",
        "tasks_allowlist",
        "cpus>=16",
        "os==darwin",
        "gpus=1",
    ]
    assert first_mismatch("shell", requires, resources, metadata) == found[0]


@given(
    st.lists(st.sampled_from(["cpus>=4", "cpus>=9", "os==linux", "os!=linux", "gpus>=1"])),
    st.dictionaries(st.sampled_from(["cpus", "gpus", "licenses"]), st.integers(0, 10)),
)
def test_the_first_mismatch_is_none_exactly_if_there_are_none(
    texts: list[str], amounts: dict[str, int]
) -> None:
    requires = tuple(parse_clause(text) for text in texts)
    resources = canonical_resources(amounts)
    found = tuple(mismatches("shell", requires, resources, WORKER))
    assert first_mismatch("shell", requires, resources, WORKER) == (found[0] if found else None)


@given(st.dictionaries(st.text(), json_values), json_values)
def test_no_metadata_breaks_the_matching(metadata: dict[str, object], value: object) -> None:
    requires = canonical_requires(["a==1", "a!=1", "a in 1,x", "a has x", "a>=1", "a matches 1.*"])
    strange = {**metadata, "a": value, "system:memory": value, "tasks_denylist": value}
    for mismatch in mismatches("shell", requires, (("memory", 1),), strange):
        assert mismatch.text
