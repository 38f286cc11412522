"""All that is wrong with a file is told in one round, each with its line."""

from pathlib import Path

import pytest

from windlass.workflows.expansion import expand_file
from windlass.workflows.nodes import ManyMisdescribed, Misdescribed

FAULTY = """\
name: w
fail_fst: true
key: ""
parameters:
  who: {}
  times: {type: integer, default: many}
labels: {a: [1]}
on_failure:
  - {webhok: {}}
outputs:
  version: ${{ jobs.lines.outputs.verison }}
jobs:
  build:
    run: [make, "${{ parameters.woh }}", "${{ matrix.os }}"]
    outputs: [version]
    outputs: [other]
    retries: -1
    timeout: soon
    queue: [a]
  count:
    run: make
    count: ${{ parameters.times }}
  test:
    rnu: make test
    after: [biuld, lint]
    if: failure('deploy')
  lint: {task: 7}
  both: {run: make, task: shell}
  matrix:
    run: make
    matrix: {os: []}
    after: count
  once: {run: make, if: 1 ==}
  early: {run: make, if: failure()}
  env:
    run: echo
    env: {WINDLASS_X: a}
  lines: {run: make, outputs: [version]}
  around: {run: make, after: again}
  again: {run: make, after: around}
  inside:
    workflow:
      name: x
      jobs:
        a: {run: 7, after: b}
"""

EXPECTED = (
    (2, "unknown key fail_fst in the workflow; did you mean fail_fast?"),
    (3, "key"),
    (5, "parameters.who to be given (text)"),
    (6, "parameters.times.default to be a whole number"),
    (7, "labels.a"),
    (9, "webhok"),
    (11, "did you mean version?"),
    (14, "did you mean parameters.who?"),
    (14, "matrix.os"),
    (16, "named once (first on line 15)"),
    (17, "jobs.build.retries"),
    (18, "jobs.build.timeout"),
    (19, "jobs.build.queue"),
    (24, "unknown key rnu in jobs.test; did you mean run?"),
    (25, "did you mean build?"),
    (26, "jobs.test.if"),
    (27, "jobs.lint.task"),
    (28, "without task beside run"),
    (31, "jobs.matrix.matrix"),
    (33, "a value at its end"),
    (34, "a job with after or after_any"),
    (37, "WINDLASS_"),
    (39, "free of cycles"),
    (45, "jobs.a.run"),
    (45, "jobs.a.after"),
)


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(FAULTY)
    with pytest.raises(ManyMisdescribed) as refused:
        expand_file(file, {"paramter": "x"})
    told = [error.message for error in refused.value.errors]
    for line, said in EXPECTED:
        assert any(text.startswith(f"{file}:{line}: ") and said in text for text in told), (
            f"{line}: {said}\n" + "\n".join(told)
        )
    assert any("unknown key paramter in parameters" in text for text in told)
    assert len(told) == len(EXPECTED) + 1, "\n".join(told)


NO_VALUE = """\
name: w
parameters: {n: {type: integer}}
jobs:
  many: {run: a, count: '${{ parameters.n }}'}
  one: {run: a, after: 'many[1]', if: parameters.n == 2}
"""
NO_JOB = """\
name: w
jobs:
  a: {rnu: x, outputs: [v]}
  b:
    run: echo ${{ jobs.a.outputs.v }}
"""
NO_SYNTAX = "name: !x w\nname: w\njobs: {a: {run: 7}}\n"


@pytest.mark.parametrize(
    ("text", "lines"), [(NO_VALUE, [2]), (NO_JOB, [3]), (NO_SYNTAX, [1, 2, 3])]
)
def test_what_follows_from_a_fault_is_not_told(text: str, lines: list[int], tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(text)
    with pytest.raises(Misdescribed) as refused:
        expand_file(file, {})
    caught = refused.value
    errors = caught.errors if isinstance(caught, ManyMisdescribed) else [caught]
    assert [error.place.line for error in errors] == lines, caught.message


OF_OTHERS = """\
name: w
params: {n: {}}
jobs:
  build: {script: make, needs: fetch, continue-on-error: true}
  test:
    run: echo ${{ params.n }} ${{ needs.build.outputs.v }} ${{ }}
    matrix: {os: linux}
    if: os = 'linux'
  last: {run: make, after: build, if: faliure(), env: {A: "${{ nope }}", B: [1]}}
  next: {run: make, after: build, if: failure}
"""

SUGGESTED = (
    (2, "unknown key params in the workflow; did you mean parameters?"),
    (4, "unknown key script in jobs.build; did you mean run?"),
    (4, "unknown key needs in jobs.build; did you mean after?"),
    (4, "unknown key continue-on-error in jobs.build; did you mean allow_failure?"),
    (7, "expected jobs.test.matrix.os to be a list"),
    (8, "expected jobs.test.if to be a condition such as"),
    (9, "output(), got faliure(); did you mean failure()?"),
    (9, "as there are no parameters and no matrix, got ${{ nope }}"),
    (9, "expected jobs.last.env.B to be text, a number, true or false"),
    (
        10,
        "if to be a condition with known names, got failure; did you mean failure()?",
    ),
)


def told_about(text: str, tmp_path: Path) -> list[str]:
    file = tmp_path / "w.yaml"
    file.write_text(text)
    with pytest.raises(Misdescribed) as refused:
        expand_file(file, {})
    caught = refused.value
    errors = caught.errors if isinstance(caught, ManyMisdescribed) else [caught]
    return [error.message.removeprefix(f"{file}:") for error in errors]


def test_names_of_other_systems_lead_to_ours_and_conditions_are_read_beside_other_faults(
    tmp_path: Path,
) -> None:
    told = told_about(OF_OTHERS, tmp_path)
    for line, said in SUGGESTED:
        assert any(text.startswith(f"{line}: ") and said in text for text in told), (said, told)
    assert len(told) == len(SUGGESTED), told


def test_every_unknown_name_of_a_line_is_told_with_what_was_meant(tmp_path: Path) -> None:
    line = "${{ params.n }} ${{ needs.a.outputs.v }} ${{ }} ${{ parameters.n }}"
    for run in (f"echo {line}", f"[echo, '{line}']"):
        text = f"name: w\nparameters: {{n: {{default: 1}}}}\njobs:\n  b: {{run: {run!r}}}\n"
        text = text if run.startswith("echo") else text.replace(repr(run), run)
        told = told_about(text, tmp_path)
        assert len(told) == 3, told
        assert (
            "known names (parameters.n), got ${{ params.n }}; did you mean parameters.n?" in told[0]
        )
        assert "got ${{ needs.a.outputs.v }}; did you mean jobs.a.outputs.v?" in told[1]
        assert "free of ${{ except for" in told[2]


NO_YAML = "2: expected the file to be valid YAML: "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "jobs:\n\ta: 1\n",
            "found character that cannot start any token; indent with spaces, not with tabs",
        ),
        ("jobs: [a\n", "did not find expected ',' or ']'"),
    ],
)
def test_what_is_no_yaml_is_told_in_plain_words(text: str, said: str, tmp_path: Path) -> None:
    assert told_about(text, tmp_path) == [NO_YAML + said]


def test_a_file_that_is_not_there_is_told_once(tmp_path: Path) -> None:
    with pytest.raises(Misdescribed) as refused:
        expand_file(tmp_path / "none.yaml", {})
    said = f"{tmp_path}/none.yaml: expected the file to be readable: No such file or directory"
    assert refused.value.message == said
