"""Clauses are read into one canonical form and written back."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.clauses import (
    Clause,
    canonical_clause,
    canonical_requires,
    parse_clause,
    target,
)
from windlass.domain.values.errors import InvalidInput, shorten

GIB = 1024**3


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("memory>=4GiB", Clause("system:memory", ">=", 4 * GIB)),
        (" memory >= 4 GiB ", Clause("system:memory", ">=", 4 * GIB)),
        ("system:memory>=4294967296", Clause("system:memory", ">=", 4 * GIB)),
        ("disk>10GB", Clause("system:disk", ">", 10**10)),
        ("cpus>=2", Clause("system:cpus", ">=", 2)),
        ("cpus>=2.0", Clause("system:cpus", ">=", 2)),
        ("load<0.5", Clause("load", "<", 0.5)),
        ("gpus==1", Clause("system:gpus", "==", 1)),
        ("os==linux", Clause("system:os", "==", "linux")),
        ("os != windows", Clause("system:os", "!=", "windows")),
        ("os in linux, darwin,linux", Clause("system:os", "in", ("darwin", "linux"))),
        ("os in [linux]", Clause("system:os", "in", ("linux",))),
        ("memory in 4GiB,8GiB", Clause("system:memory", "in", (4 * GIB, 8 * GIB))),
        ("system:architectures has arm64", Clause("system:architectures", "has", "arm64")),
        ("ffmpeg:version matches >=5", Clause("ffmpeg:version", "matches", ">=5")),
        ("ffmpeg:version matches >=5, <7", Clause("ffmpeg:version", "matches", ">=5,<7")),
        ("ffmpeg:available==true", Clause("ffmpeg:available", "==", "true")),
        ("python:version==3.10", Clause("python:version", "==", "3.10")),
        ("zone==007", Clause("zone", "==", "007")),
    ],
)
def test_a_clause_is_read(text: str, clause: Clause) -> None:
    assert parse_clause(text) == clause
    assert parse_clause(clause.text) == clause


@pytest.mark.parametrize(
    "text",
    [
        *("", "memory", "memory=4GiB", ">=4", "memory>=", "memory has", "a ~ b", "a\0==b"),
        *("cpus>=many", "memory>=lots", "memory>=-1", "v matches latest", "os in ,", "k in a,[b"),
        *("cpus>=nan", "cpus>=inf", "cpus>=" + "9" * 19, "k==" + "x" * 2_000, "ключ==1", "a==b\n"),
    ],
    ids=shorten,
)
def test_a_bad_clause_is_refused_by_the_name_of_its_field(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_clause(text)
    assert caught.value.field.startswith("requires")


def test_an_error_names_the_key_and_what_was_expected() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_clause("ffmpeg:version>=six")
    assert str(caught.value) == (
        "expected requires ffmpeg:version to be a number (versions are compared with matches), "
        "got six"
    )


@pytest.mark.parametrize(
    "clause",
    [
        Clause("", "==", 1),
        Clause("a b", "==", 1),
        Clause("a", "=", 1),
        Clause("a", "==", ""),
        Clause("a", "==", ("x", "y")),
        Clause("a", ">=", float("nan")),
        Clause("a", ">=", float("inf")),
        Clause("a", ">=", 2**64),
        Clause("a", "in", ()),
        Clause("a", "in", ("x,y",)),
    ],
    ids=str,
)
def test_a_bad_clause_made_in_code_is_refused_too(clause: Clause) -> None:
    with pytest.raises(InvalidInput):
        canonical_clause(clause)


def test_what_means_the_same_is_the_same() -> None:
    same: list[str | Clause] = [
        "memory>=4GiB",
        "system:memory >= 4096MiB",
        Clause("memory", ">=", "4GiB"),
        Clause("system:memory", ">=", 4 * GIB),
    ]
    assert canonical_requires(same) == (Clause("system:memory", ">=", 4 * GIB),)
    flags: list[str | Clause] = [Clause("a", "==", True), "a==true"]
    assert canonical_requires(flags) == (Clause("a", "==", "true"),)
    fractions: list[str | Clause] = [Clause("a", "==", 2.5), "a==2.5"]
    assert canonical_requires(fractions) == (Clause("a", "==", "2.5"),)


def test_true_and_one_stay_apart() -> None:
    assert len(canonical_requires([Clause("a", "==", True), Clause("a", "==", 1)])) == 2


def test_a_target_is_short_for_an_architecture() -> None:
    assert target("arm64") == Clause("system:architectures", "has", "arm64")
    with pytest.raises(InvalidInput, match="expected target system:architectures"):
        target("")


def test_a_clause_says_what_it_needs() -> None:
    assert parse_clause("memory>=16GiB").needs == "memory ≥ 16 GiB"
    assert parse_clause("disk==16GB").needs == "disk = 16 GB"
    assert parse_clause("tool matches >=3,<4").needs == "tool version >=3,<4"
    assert parse_clause("secret:key in *,team").needs == "the secret key"
    assert parse_clause("os!=windows").needs == "os ≠ windows"
    assert parse_clause("os in linux,darwin").needs == "os = darwin or linux"
    assert (
        parse_clause("system:architectures has arm64").needs == "arm64 among system:architectures"
    )


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)
keys = words | st.sampled_from(["memory", "cpus", "os", "tool:version", "system:disk"])
values = words | st.integers(0, 2**62) | st.floats(0, 2.0**60)
clauses = (
    st.builds(Clause, keys, st.sampled_from(["==", "!=", "has", "in"]), values)
    | st.builds(
        Clause,
        keys.filter(lambda key: "memory" not in key and "disk" not in key),
        st.sampled_from([">=", "<=", ">", "<"]),
        st.integers(-(2**62), 2**62) | st.floats(-(2.0**60), 2.0**60),
    )
    | st.builds(Clause, keys, st.just("in"), st.lists(words, min_size=1).map(tuple))
    | st.builds(Clause, keys, st.just("matches"), st.sampled_from([">=5", "6.*", ">=5, <7"]))
)


def canonical_or_none(clause: Clause) -> Clause | None:
    try:
        return canonical_clause(clause)
    except InvalidInput:
        return None  # for example a word as an amount of memory


canonical = clauses.map(canonical_or_none).filter(lambda clause: clause is not None)


@given(canonical)
def test_the_canonical_form_is_stable_written_read_and_stored(clause: Clause) -> None:
    assert canonical_clause(clause) == clause
    assert parse_clause(clause.text) == clause
    assert msgspec.json.decode(msgspec.json.encode(clause), type=Clause) == clause
    hash(clause)


@given(st.lists(canonical))
def test_the_order_and_repetition_of_clauses_do_not_matter(
    wanted: list[Clause],
) -> None:
    once = canonical_requires(wanted)
    assert canonical_requires([*reversed(wanted), *wanted]) == once
    assert canonical_requires([clause.text for clause in wanted]) == once
