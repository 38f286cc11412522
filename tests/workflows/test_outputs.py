"""Outputs: what a job of a file leaves for later jobs and for whoever submitted the workflow."""

from pathlib import Path

import pytest

from tests.workflows.test_expansion import argv, expanded
from windlass.workflows.expansion import expand_file
from windlass.workflows.nodes import Misdescribed

FILE = """
name: w
parameters: {who: {default: '${{ jobs.evil.outputs.x }}'}}
outputs:
  version: ${{ jobs.plan.outputs.version }}
  text: v${{ jobs.plan.outputs.version }}-${{ parameters.who }}
jobs:
  plan: {run: make plan, outputs: [version]}
  line: {run: 'echo "${{ jobs.plan.outputs.version }}" ${{ parameters.who }}'}
  words:
    run: [echo, "v${{ jobs.plan.outputs.version }}", "$${{ jobs.plan.outputs.version }}"]
    env: {V: "${{ jobs.plan.outputs.version }}"}
    after_any: plan
  call: {task: t, args: {v: "${{ jobs.plan.outputs.version }}", w: ["${{ jobs.call2.outputs.a }}"]}}
  call2: {task: t}
  many: {run: make, outputs: [v], matrix: {os: [a, b]}}
  each: {run: "echo ${{ jobs.many[*].outputs.v }}", matrix: {os: [a, b]}}
  if: {run: make, after: plan, if: jobs.plan.outputs.version == parameters.who or failure('plan')}
"""


def test_outputs_are_references_that_the_server_fills_in(tmp_path: Path) -> None:
    jobs = expanded(FILE, tmp_path)
    version = {"$result": {"job": "plan", "output": "version"}}
    assert jobs["plan"].args["outputs"] == ["version"]
    written = "${{ jobs.evil.outputs.x }}"
    assert argv(jobs["line"]) == [
        "sh", "-c", 'echo "${1}" ${2}', "sh", {"$text": [version]}, written
    ]  # fmt: skip
    assert jobs["line"].after == ("plan",)
    assert argv(jobs["words"]) == [
        "echo", {"$text": ["v", version]}, "${{ jobs.plan.outputs.version }}"
    ]  # fmt: skip
    assert jobs["words"].args["env"] == {"V": {"$text": [version]}}
    assert (jobs["words"].after, jobs["words"].after_any) == ((), ("plan",))
    other = {"$result": {"job": "call2", "output": "a"}}
    assert jobs["call"].args == {"v": version, "w": [other]}
    assert jobs["call"].after == ("plan", "call2")
    assert jobs["each[b]"].after == ("many[b]",)
    assert jobs["if"].run_if == (
        "output('plan', 'version') == '${{ jobs.evil.outputs.x }}' || failure('plan')"
    )
    made = expand_file(tmp_path / "w.yaml", {})
    assert made.workflow.outputs == {
        "version": version, "text": {"$text": ["v", version, f"-{written}"]}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("run: 'echo ${{ jobs.plan.outputs.verison }}'", "did you mean version?"),
        ("run: 'echo ${{ jobs.plna.outputs.version }}'", "did you mean plan?"),
        ("run: 'echo ${{ jobs.plan.version }}'", "jobs.NAME.outputs.OUTPUT"),
        ("run: 'echo ${{ jobs.many.outputs.v }}'", "the output of one job"),
        ("run: 'echo ${{ jobs.use.outputs.v }}'", "other jobs"),
        ("run: echo\n    queue: ${{ jobs.plan.outputs.version }}", "only run, env and args"),
        ("run: echo\n    outputs: ['a b']", "names of letters"),
    ],
)
def test_a_wrong_output_is_refused_with_its_line(tmp_path: Path, job: str, said: str) -> None:
    text = f"""name: w
jobs:
  plan: {{run: make plan, outputs: [version]}}
  many: {{run: make, outputs: [v], count: 2}}
  use:
    {job}
"""
    with pytest.raises(Misdescribed, match=r"w\.yaml:[67]: ") as refused:
        expanded(text, tmp_path)
    assert said in refused.value.message
