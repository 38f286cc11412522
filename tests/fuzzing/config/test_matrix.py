"""The matrix of the solver file: which combinations it means, and what mistakes in it say."""

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.config.combinations import combination_names, combinations_of
from windlass_fuzz.config.fleet_schedules import builds_ms
from windlass_fuzz.config.github_workflows import workflows_of
from windlass_fuzz.config.matrix_settings import MAX_COMBINATIONS
from windlass_fuzz.config.solver_file import Solver, parse_solver
from windlass_fuzz.engines.engine import check_engines

COMMON: dict[str, Any] = {
    "name": "toy",
    "repository": "toy",
    "build": {"production": ["./build.sh", "{target}"], "coverage": ["b"], "env": {"CC": "clang"}},
    "binaries": ["fuzz_{target}"],
    "engine": {"name": "libfuzzer", "binary": "fuzz_{target}", "flags": ["-len_control=0"]},
}
SANITIZERS = [
    {"name": "address", "env": {"CFLAGS": "-fsanitize=address"}},
    {"name": "undefined", "env": {"CFLAGS": "-fsanitize=undefined"}, "memory": "1GiB"},
]


def solver_with(matrix: dict[str, Any] | None, **changes: Any) -> Solver:
    given_matrix = {} if matrix is None else {"matrix": matrix}
    return parse_solver(msgspec.json.encode(COMMON | given_matrix | changes), Path("toy.yaml"))


def test_a_file_without_a_matrix_is_one_combination_that_changes_nothing() -> None:
    solver = solver_with(None)
    (only,) = combinations_of(solver)
    assert (only.name, only.solver, only.corpus, dict(only.env)) == ("", solver, "", {})
    assert combination_names(solver) == ()


def test_every_combination_is_a_solver_of_its_own() -> None:
    solver = solver_with({"targets": ["parse", "print"], "sanitizers": SANITIZERS})
    found = {one.name: one for one in combinations_of(solver)}
    assert list(found) == ["parse-address", "parse-undefined", "print-address", "print-undefined"]
    one = found["print-undefined"]
    assert one.solver.build.production == ("./build.sh", "print")
    assert one.solver.binaries == ("fuzz_print",)
    assert one.solver.engine == {
        "name": "libfuzzer", "binary": "fuzz_print", "flags": ["-len_control=0"]
    }  # fmt: skip
    assert (one.solver.memory, found["print-address"].solver.memory) == ("1GiB", "2GiB")
    assert one.solver.build.env == {
        "CC": "clang", "CFLAGS": "-fsanitize=undefined", "WINDLASS_FUZZ_TARGET": "print",
        "WINDLASS_FUZZ_SANITIZER": "undefined", "WINDLASS_FUZZ_ENGINE": "",
        "WINDLASS_FUZZ_COMBINATION": "print-undefined",
    }  # fmt: skip
    assert one.env["CFLAGS"] == "-fsanitize=undefined"
    assert one.solver.matrix is None


def test_combinations_of_a_target_share_inputs_of_one_format() -> None:
    engines = ["libfuzzer", {"name": "typefuzz", "format": "smt2"}]
    solver = solver_with({"targets": ["a", "b"], "sanitizers": ["s", "t"], "engines": engines})
    shared = {one.name: one.corpus for one in combinations_of(solver)}
    assert shared["a-s-libfuzzer"] == shared["a-t-libfuzzer"] == "a"
    assert shared["a-s-typefuzz"] == shared["a-t-typefuzz"] == "a.smt2"
    assert len(set(shared.values())) == 4


def test_options_of_another_engine_do_not_apply() -> None:
    afl = {"name": "afl", "options": {"argv": ["{binaries}/afl_{target}", "@@"]}}
    solver = solver_with({"targets": ["parse"], "engines": ["libfuzzer", afl]})
    first, second = (one.solver.engine for one in combinations_of(solver))
    assert first["binary"] == "fuzz_parse"
    assert second == {"name": "afl", "argv": ["{binaries}/afl_parse", "@@"]}


def test_rows_are_excluded_first_and_then_included() -> None:
    matrix = {
        "targets": ["parse", "print"],
        "sanitizers": ["address", "memory"],
        "exclude": [{"sanitizer": "memory"}],
        "include": [
            {"target": "parse", "sanitizer": "memory", "flags": ["--slow"]},
            {"target": "print", "sanitizer": "address", "env": {"A": "1"}},
        ],
    }
    found = {one.name: one for one in combinations_of(solver_with(matrix))}
    assert list(found) == ["parse-address", "print-address", "parse-memory"]
    assert found["parse-memory"].solver.build.production == ("./build.sh", "parse", "--slow")
    assert found["print-address"].env["A"] == "1"


def test_the_matrix_survives_the_way_to_a_worker() -> None:
    solver = solver_with({"targets": ["parse"], "sanitizers": SANITIZERS})
    again = parse_solver(msgspec.json.encode(solver), Path("standard input"))
    assert combinations_of(again) == combinations_of(solver)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ({}, "matrix is empty"),
        ({"target": ["a"]}, "toy.yaml: unknown key target in matrix; did you mean targets?"),
        (
            {"sanitizers": [{"name": "a", "falgs": []}]},
            "toy.yaml: unknown key falgs in matrix.sanitizers[0]; did you mean flags?",
        ),
        (
            {"targets": ["a"], "exclude": [{"sanitiser": "a"}]},
            "toy.yaml: unknown key sanitiser in matrix.exclude[0]; did you mean sanitizer?",
        ),
        ({"targets": ["a", {"name": "a"}]}, "matrix.targets lists a twice"),
        ({"targets": ["a/b"]}, "expected matrix.targets to be"),
        (
            {"targets": ["parse"], "exclude": [{"target": "prase"}]},
            "matrix.exclude: unknown target prase (known: parse); did you mean parse?",
        ),
        (
            {"targets": ["parse"], "include": [{"target": "parse", "engine": "afl"}]},
            "matrix.include[0]: unknown engine afl: the matrix has no engines",
        ),
        (
            {"targets": ["a"], "sanitizers": ["s"], "include": [{"target": "a"}]},
            "matrix.include[0] has no sanitizer (known: s)",
        ),
        ({"targets": ["a"], "include": [{"target": "a"}]}, "repeats the combination a"),
        ({"targets": ["a"], "exclude": [{}]}, "matrix.exclude has a row without values"),
        ({"targets": ["a"], "exclude": [{"target": "a"}]}, "leaves no combination"),
        (
            {"targets": ["a-b", "a"], "sanitizers": ["c", "b-c"]},
            "two combinations have the name a-b-c",
        ),
        (
            {"targets": [f"t{n}" for n in range(MAX_COMBINATIONS + 1)]},
            f"at most {MAX_COMBINATIONS} combinations",
        ),
        ({"targets": ["t" * 40], "sanitizers": ["s" * 40]}, "is longer than 64 characters"),
        ({"targets": [{"name": "a", "input_timeout": "0s"}]}, "matrix.input_timeout"),
        ({"targets": [{"name": "a", "memory": "lots"}]}, "matrix.memory"),
    ],
)
def test_a_mistake_in_the_matrix_is_explained(matrix: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        solver_with(matrix)
    assert message in str(refused.value)


def test_an_engine_is_needed_somewhere() -> None:
    with pytest.raises(InvalidInput, match="combination a has no engine"):
        solver_with({"targets": ["a"]}, engine={})
    with pytest.raises(InvalidInput, match="key engine is missing"):
        parse_solver(
            msgspec.json.encode({k: v for k, v in COMMON.items() if k != "engine"}), Path("a.yaml")
        )
    assert combination_names(solver_with({"engines": ["command"]}, engine={})) == ("command",)


NAMES = st.lists(st.sampled_from("abcd"), unique=True, min_size=1, max_size=3)


@given(
    axes=st.tuples(NAMES, NAMES, NAMES),
    rows=st.lists(st.tuples(*[st.sampled_from(["", "a", "b", "c", "d"])] * 3), max_size=3),
)
def test_exclusion_leaves_exactly_what_no_row_matches(
    axes: tuple[list[str], ...], rows: list[tuple[str, ...]]
) -> None:
    rows = [
        row
        for row in rows
        if any(row) and all(not v or v in axis for v, axis in zip(row, axes, strict=True))
    ]
    keys = ("target", "sanitizer", "engine")
    exclude = [{k: v for k, v in zip(keys, row, strict=True) if v} for row in rows]
    left = [
        values
        for values in itertools.product(*axes)
        if not any(all(not v or v == w for v, w in zip(row, values, strict=True)) for row in rows)
    ]
    matrix = dict(zip(("targets", "sanitizers", "engines"), axes, strict=True))
    if not left:
        with pytest.raises(InvalidInput, match="leaves no combination"):
            solver_with({**matrix, "exclude": exclude})
        return
    found = combinations_of(solver_with({**matrix, "exclude": exclude}))
    assert [tuple(one.names) for one in found] == left


def test_builders_get_time_for_all_combinations_and_the_engines_their_packages() -> None:
    afl = {"name": "afl", "options": {"argv": ["{binaries}/a", "@@"]}}
    plain = solver_with(None)
    matrix = solver_with({"targets": ["a", "b"], "engines": ["libfuzzer", afl]})
    assert builds_ms(plain) == 2 * plain.build.timeout_ms
    assert builds_ms(matrix) == 5 * plain.build.timeout_ms
    made = workflows_of(matrix, "s3://bucket", "toy.yaml")["fuzz-toy-builder.yml"]
    assert "afl++" in made
    assert "timeout-minutes: 255" in made  # four builds of an hour
    assert "afl++" not in workflows_of(plain, "s3://bucket", "toy.yaml")["fuzz-toy-builder.yml"]


def test_an_option_that_an_engine_does_not_have_is_named_with_its_combination() -> None:
    options = {"argv": ["{binaries}/fuzz_{target}", "@@"], "binary": "fuzz_{target}"}
    solver = solver_with({"engines": ["libfuzzer", {"name": "afl", "options": options}]})
    with pytest.raises(InvalidInput, match=r"^afl: engine afl: unknown key binary$"):
        check_engines(solver)
