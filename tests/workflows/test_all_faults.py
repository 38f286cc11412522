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
    (34, "beside after or after_any"),
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
