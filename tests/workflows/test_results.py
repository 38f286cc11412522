"""Results of jobs as arguments, in workflow files."""

from pathlib import Path

import pytest

from tests.workflows.test_expansion import expanded
from windlass.workflows.nodes import Misdescribed


def test_the_result_of_a_job_is_an_argument_by_its_name(tmp_path: Path) -> None:
    inner = """
name: inner
jobs:
  make: {task: t, args: {n: "${{ matrix.v }}"}, matrix: {v: [1, 2]}}
  one: {task: t, matrix: {v: [1, 2]}, args: {a: {$result: "make[*]"}}}
  all: {task: t, args: {a: {$result: make}, b: {$literal: {$result: make}}, c: [{$result: 7}]}}
"""
    (tmp_path / "inner.yaml").write_text(inner)
    jobs = expanded("name: w\njobs: {sub: {workflow: inner.yaml}}\n", tmp_path)
    assert jobs["sub/one[2]"].args == {"a": {"$result": "sub/make[2]"}}
    assert jobs["sub/one[2]"].after == ("sub/make[2]",)
    assert jobs["sub/all"].args == {
        "a": [{"$result": "sub/make[1]"}, {"$result": "sub/make[2]"}],
        "b": {"$literal": {"$result": "make"}},
        "c": [{"$result": 7}],
    }
    assert jobs["sub/all"].after == ("sub/make[1]", "sub/make[2]")


OTHER = """
name: w
jobs:
  make: {task: t}
  use:
    task: t
    args: [{$result: NAME}]
"""


@pytest.mark.parametrize(("name", "said"), [("unknown", "name of a job"), ("use", "other jobs")])
def test_a_result_of_no_other_job_is_refused(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(Misdescribed, match=rf"w\.yaml:\d+: .*jobs\.use\..*{said}"):
        expanded(OTHER.replace("NAME", name), tmp_path)
