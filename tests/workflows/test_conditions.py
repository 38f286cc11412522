"""`run` as a line, `if`, `env` of a workflow, and all errors at once."""

import subprocess
from pathlib import Path

import pytest

from tests.workflows.test_expansion import argv, expanded
from windlass.workflows.conditions import Condition
from windlass.workflows.nodes import ManyMisdescribed, Misdescribed, Node, Place
from windlass.workflows.substitution import Budget, Scope

VALUES = {
    "parameters.os": Node("linux", text="linux"), "parameters.n": Node(3, text="3"),
    "parameters.text": Node("3", text="3"), "parameters.debug": Node(False, text="false"),
    "matrix.a-b": Node("x y", text="x y"), "index": Node(0, text="0"),
}  # fmt: skip


def _holds(condition: str) -> bool:
    node = Node(condition, Place("w.yaml", 7), condition)
    return Condition(node, "jobs.a.if").holds(Scope(VALUES, Budget()))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("parameters.os == 'linux'", True),
        ('parameters.os != "linux"', False),
        ("${{ parameters.os == 'linux' }}", True),
        ("parameters.n >= 3 and parameters.n < 4", True),
        ("parameters.text == 3", True),
        ("parameters.n == '3'", True),
        ("parameters.debug", False),
        ("not parameters.debug", True),
        ("!!parameters.debug", False),
        ("parameters.debug or index == 0", True),
        ("false and true or true", True),
        ("false && (true || true)", False),
        ("matrix.a-b == 'x y'", True),
        ("'or' == 'or'", True),
        ("-1 < 0.5", True),
        ("''", False),
    ],
)
def test_a_condition_is_true_or_false(condition: str, expected: bool) -> None:
    assert _holds(condition) is expected


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("parameters.oss == 'linux'", "did you mean parameters.os?"),
        ("parameters.os = 'linux'", "a condition such as"),
        ("parameters.os == ", "a value at its end"),
        ("(true", "with ) for each ("),
        ("true false", "over after true"),
        ("parameters.n < true and parameters.os <", "a value at its end"),
        ("(" * 21 + "true" + ")" * 21, "nested at most 20 deep"),
        ("true or " * 200 + "true", "at most 1000 characters"),
        ("__import__('os')", "one of success()"),
    ],
)
def test_a_condition_that_cannot_be_read_is_refused_with_its_line(
    condition: str, said: str
) -> None:
    with pytest.raises(Misdescribed) as refused:
        _holds(condition)
    assert refused.value.message.startswith("w.yaml:7: ")
    assert said in refused.value.message


def test_jobs_whose_condition_fails_are_left_out_and_others_wait_for_what_they_waited_for(
    tmp_path: Path,
) -> None:
    text = """
name: w
parameters: {deploy: {type: boolean, default: false}}
jobs:
  build: {run: [make]}
  check: {run: [check], after: build, if: parameters.deploy}
  test:
    run: [test, "${{ matrix.os }}"]
    matrix: {os: [a, b]}
    if: matrix.os != 'b' or parameters.deploy
    after: check
  all: {run: [echo], after: [test, check]}
"""
    some = expanded(text, tmp_path)
    assert set(some) == {"build", "test[a]", "all"}
    assert some["test[a]"].after == ("build",)
    assert set(some["all"].after) == {"test[a]", "build"}
    whole = expanded(text, tmp_path, deploy="true")
    assert set(whole) == {"build", "check", "test[a]", "test[b]", "all"}
    assert whole["test[b]"].after == ("check",)


def test_a_run_that_is_text_is_a_line_whose_values_are_variables_of_the_shell(
    tmp_path: Path,
) -> None:
    text = """
name: w
parameters: {word: {}}
jobs:
  plain: {run: echo hi | tr h j}
  line: {run: 'printf "%s-%s" "${{ parameters.word }}" ${{ index }}; printf \\$${{', count: 2}
"""
    evil = """"; touch evil; $(touch evil) '"""
    jobs = expanded(text, tmp_path, word=evil)
    assert argv(jobs["plain"]) == ["sh", "-c", "echo hi | tr h j"]
    words = argv(jobs["line[1]"])
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{evil}-1${{{{"
    assert not (tmp_path / "evil").exists()


def test_variables_of_a_workflow_are_those_of_its_commands_and_of_workflows_inside(
    tmp_path: Path,
) -> None:
    text = """
name: w
parameters: {level: {default: 2}}
env: {LEVEL: "${{ parameters.level }}", PLACE: out}
jobs:
  a: {run: env}
  b: {run: [env], env: {PLACE: own}}
  f: {task: python, args: {function: "m:f"}}
  in: {workflow: {name: x, env: {PLACE: in}, jobs: {c: {run: env}}}}
"""
    jobs = expanded(text, tmp_path)
    assert jobs["a"].args["env"] == {"LEVEL": "2", "PLACE": "out"}
    assert jobs["b"].args["env"] == {"LEVEL": "2", "PLACE": "own"}
    assert jobs["in/c"].args["env"] == {"LEVEL": "2", "PLACE": "in"}
    assert "env" not in jobs["f"].args


def test_all_errors_are_told_at_once_with_lines_and_suggestions(tmp_path: Path) -> None:
    shape = "name: w\nfailfast: true\njobs:\n  a: {run: x, retrys: 3}\n  b: {run: 5}\n"
    with pytest.raises(ManyMisdescribed) as refused:
        expanded(shape, tmp_path)
    lines = refused.value.message.splitlines()
    assert [line.partition("w.yaml:")[2][0] for line in lines] == ["2", "4", "5"]
    assert "did you mean fail_fast?" in lines[0]
    assert "did you mean retries?" in lines[1]
    values = "name: w\njobs:\n  a: {run: x, timeout: soon}\n  b: {run: x, priority: hihg}\n"
    with pytest.raises(ManyMisdescribed) as refused:
        expanded(values, tmp_path)
    assert len(refused.value.errors) == 2
    names = "name: w\njobs:\n  a: {run: x, after: c}\n  b: {run: x, after: [d, a]}\n"
    with pytest.raises(ManyMisdescribed) as refused:
        expanded(names, tmp_path)
    assert [error.place.line for error in refused.value.errors] == [3, 4]
