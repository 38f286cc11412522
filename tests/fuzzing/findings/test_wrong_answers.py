"""What makes two wrong answers one bug or two: who says what, and operators of small inputs."""

from pathlib import Path

import pytest

from tests.fuzzing.roles.test_fuzzer import findings_of
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from windlass_fuzz.engines.formulas import answers_differ, operators_of
from windlass_fuzz.findings.minimise import without
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.report import render

# Two solvers that read only whole terms; the second is wrong about the operators it is given.
READS = """#!/bin/sh
awk 'BEGIN { RS = "\\001" } {
  at = index($0, "(check-sat)"); text = substr($0, 1, at - 1)
  open = gsub(/\\(/, "(", text); closed = gsub(/\\)/, ")", text)
  rest = text; gsub(/\\((KNOWN) /, "", rest); gsub(/\\(Int\\)/, "", rest)
  undeclared = text ~ /\\(f / && text !~ /declare-fun f \\(Int\\)/
  if (!at || open != closed || rest ~ /\\(/ || undeclared) { print "(error \\"syntax\\")"; exit }
  if (text ~ /\\(assert [^;]*\\((%s) /) print "unsat"; else print "sat"
}' $1
"""
SWAPS_AT = """#!/bin/sh
said=$(sh "$(dirname "$0")/right" "$1")
if grep -q 'assert.*(str[.]at ' "$1"; then
  case $said in sat) said=unsat ;; unsat) said=sat ;; esac
fi
echo "$said"
"""
OTHER_BUG = "str[.]contains|str[.]in_re"
KNOWN = "set-logic|declare-const|declare-fun|assert|not|=|distinct|or|>|f|-|str[.][a-z_+]+"
BUILD = """#!/bin/sh
mkdir -p build
cp solver.sh build/solver; cp right.sh build/right; chmod +x build/*
"""
HEAD = "(set-logic QF_S)\n(declare-const s String)\n(declare-fun f (Int) Int)\n"
REPLACE = "(assert (= s (str.replace s s s)))\n"
AT = "(assert (not (= (str.++ s s) (str.at s 1))))\n"
OTHER = "(assert (> (f (str.len s)) (- 1)))\n(assert (or true (str.in_re s re.all)))\n"
END = "(check-sat)\n"
BUDGET_MS = 6_000_000  # a run ends at the first test that fails; a tenth is for triage
MAX_RUNS = 10
PLAIN = f"{HEAD}{OTHER}{END}"


def reading(wrong: str) -> str:
    return (READS % wrong).replace("KNOWN", KNOWN)


class TypefuzzWorld(World):
    """A world whose engine compares a solver to one that is right."""

    @property
    def description(self) -> str:
        lines = [
            "engine: {name: typefuzz, solvers: ['{binaries}/build/right', "
            "'{binaries}/build/solver']}"
            if line.startswith("engine:")
            else line.replace("[build/solver]", "[build/solver, build/right]")
            for line in super().description.splitlines()
        ]
        return "\n".join(lines)

    def wrong_about(self, message: str, *operators: str, **tests: str) -> str:
        pattern = "|".join(operators).replace(".", "[.]") or "nothing"
        files = {"build.sh": BUILD, "right.sh": reading("nothing"), "solver.sh": reading(pattern)}
        return self.commit(message, **files, **tests, **{"tests/a.txt": PLAIN})


def fuzz_until(world: World, commit: str, findings: int) -> None:
    """Fuzzes until there are this many findings; each run ends with the first bug that it meets."""
    for _ in range(MAX_RUNS):
        run(world.fuzz(commit, until_bug=True, budget_ms=BUDGET_MS))
        if len(run(findings_of(world))) >= findings:
            return


def found_with(folder: Path, wrong: tuple[str, ...], *inputs: str) -> list[Finding]:
    """Returns the findings after runs whose tests are these inputs."""
    world = TypefuzzWorld(folder)
    tests = {f"tests/input-{number}.smt2": text for number, text in enumerate(inputs)}
    commit = world.wrong_about("wrong", *wrong, **tests)
    run(world.build_and_schedule(commit))
    fuzz_until(world, commit, len(wrong))
    return sorted(run(findings_of(world)), key=lambda one: one.title)


def test_two_bugs_with_one_pair_of_answers_are_two_findings(tmp_path: Path) -> None:
    found = found_with(
        tmp_path, ("str.replace", "str.at"),
        f"{HEAD}{OTHER}{REPLACE}{END}", f"{HEAD}{OTHER}{AT}{END}",
    )  # fmt: skip
    said = "answers differ: right says sat, solver says unsat"
    assert [one.title for one in found] == [f"{said} (str.at)", f"{said} (str.replace)"]


def test_one_bug_with_two_inputs_is_one_finding(tmp_path: Path) -> None:
    other = f"{HEAD}(assert (distinct (str.++ s s) (str.replace s s s)))\n{END}"
    (found,) = found_with(tmp_path, ("str.replace",), f"{HEAD}{OTHER}{REPLACE}{END}", other)
    assert found.frames == ["str.replace"]


def test_a_bug_beside_another_in_one_input_is_found_too(tmp_path: Path) -> None:
    both = f"{HEAD}{OTHER}{REPLACE}{AT}{END}"
    found = found_with(tmp_path, ("str.replace", "str.at"), both)
    assert [one.frames for one in found] == [["str.at"], ["str.replace"]]


def test_wrong_answers_in_both_directions_are_two_findings_of_one_group(tmp_path: Path) -> None:
    """A missing lemma says sat, a wrong one unsat: nothing shows that they are one bug."""
    world = TypefuzzWorld(tmp_path)
    held = f"{HEAD}(assert (= s (str.contains (str.at s 1) s)))\n{END}"
    tests = {"tests/a.txt": PLAIN, "tests/b.txt": f"{HEAD}{AT}{END}", "tests/c.txt": held}
    right = reading("str.contains")
    files = {"build.sh": BUILD, "right.sh": right, "solver.sh": SWAPS_AT}
    commit = world.commit("swaps", **files, **tests)
    run(world.build_and_schedule(commit))
    fuzz_until(world, commit, 2)
    found = sorted(run(findings_of(world)), key=lambda one: one.title)
    assert [one.title for one in found] == [
        "answers differ: right says sat, solver says unsat (str.at)",
        "answers differ: right says unsat, solver says sat (str.at str.contains)",
    ]
    (first,) = (one for one in found if not one.group)
    (second,) = (one for one in found if one.group)
    assert second.group == first.key
    assert f"shares operators with | `{first.key}`" in render(second, "scripted", "")
    fixed = world.commit(
        "one fix, and a bug that ends the run", **{"solver.sh": reading(OTHER_BUG)}
    )
    run(world.build_and_schedule(fixed))
    run(world.fuzz(fixed, until_bug=True, budget_ms=BUDGET_MS))
    closed = {one.key for one in run(findings_of(world)) if one.state == "closed"}
    assert closed == {first.key, second.key}


def test_the_fix_of_one_bug_closes_its_finding_alone(tmp_path: Path) -> None:
    world = TypefuzzWorld(tmp_path)
    tests = {"tests/b.txt": f"{HEAD}{REPLACE}{END}", "tests/c.txt": f"{HEAD}{AT}{END}"}
    both = world.wrong_about("both", "str.replace", "str.at", **tests)
    one = world.wrong_about("one", "str.at")
    run(world.build_and_schedule(both, one))
    fuzz_until(world, both, 2)
    assert len(run(findings_of(world))) == 2
    run(world.fuzz(one, until_bug=True, budget_ms=BUDGET_MS))
    states = {tuple(finding.frames): finding.state for finding in run(findings_of(world))}
    assert states == {("str.at",): "open", ("str.replace",): "closed"}


def test_inputs_that_were_not_made_small_in_time_join_the_finding_later(tmp_path: Path) -> None:
    world = TypefuzzWorld(tmp_path, more="findings: {triage: 1ms}")
    tests = {
        "tests/b.txt": f"{HEAD}{OTHER}{AT}{END}",
        "tests/c.txt": f"{HEAD}(assert (= s (str.at (str.replace s s s) 1)))\n{END}",
    }
    commit = world.wrong_about("wrong", "str.at", **tests)
    run(world.build_and_schedule(commit))
    assert len(run(world.fuzz(commit, until_bug=True, budget_ms=BUDGET_MS)).findings) == 1
    (large,) = run(findings_of(world))
    assert len(large.frames) > 1
    world.more = ""
    run(world.fuzz(commit, until_bug=True, budget_ms=BUDGET_MS))
    (small,) = run(findings_of(world))
    assert (small.key, small.frames) == (large.key, ["str.at"])


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"a": ["sat"], "b": ["sat"]}, ""),
        ({"a": ["sat"], "b": ["unknown"]}, ""),
        ({"a": ["sat", "sat"], "b": ["sat", "unsat"]}, "answers differ: a says sat, b says unsat"),
        ({"a": ["sat"], "b": ["unsat"]}, "answers differ: a says sat, b says unsat"),
        ({"a": ["unsat"], "b": ["sat"]}, "answers differ: a says unsat, b says sat"),
        (
            {"a": ["unsat"], "b": ["sat"], "c": ["unsat"]},
            "wrong answer: b says sat, 2 others say unsat",
        ),
        (
            {"a": ["unsat"], "b": ["sat"], "c": ["unknown"]},
            "answers differ: a says unsat, b says sat",
        ),
        ({"a": [], "b": ["sat"]}, ""),
    ],
)
def test_who_is_alone_with_an_answer_is_named(answers: dict[str, list[str]], said: str) -> None:
    assert answers_differ(answers) == said


@pytest.mark.parametrize(
    ("text", "operators"),
    [
        (PLAIN, ("QF_S", "str.in_re", "str.len")),
        ("(declare-const x Int)(assert (= x x))(check-sat)", ("=",)),
        ("(assert (let ((y (+ 1 2))) (forall ((z Int)) (< y z))))", ("+", "forall")),
        ("(assert (= ((_ extract 7 0) x) (_ bv3 8)))", ("extract",)),
        ("(define-fun g ((a Int)) Int (* a 2))(assert (= (g 1) (- 2)))", ("*",)),
        ('(assert (= s "(str.at")) ; (str.replace\n(assert (|a b| s))', ("=",)),
        ("(set-logic |a\nb|)(assert (|c\nd| (str.at\u202e x)))", ()),
        ("(declare-datatypes ((T 0)) (((mk (get Int)))))(assert (= (get (mk 1)) 1))", ("=",)),
        ("(assert (! (bvadd x y) :named a))", ("bvadd",)),
        ("(assert ((as const (Array Int Int)) 0))", ("const",)),
        ("))((", ()),
        ("(assert", ()),
        ("(" * 100_000, ()),
        ("", ()),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_operators_of_a_formula(text: str, operators: tuple[str, ...]) -> None:
    assert operators_of(text) == operators


def test_what_contains_a_word_is_left_out() -> None:
    data = f"{HEAD}{REPLACE}{AT}{END}".encode()
    assert without(data, "str.at").decode() == f"{HEAD}{REPLACE}\n{END}"
    assert without(data, "str") == data
