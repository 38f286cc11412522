"""Files as one description, which means the same as the files."""

import json
from pathlib import Path

import pytest

from windlass.workflows.expansion import expand, expand_file
from windlass.workflows.files import describe_file
from windlass.workflows.nodes import Misdescribed

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "workflows"
VALUES = """
name: values
parameters: {text: {type: string, default: 1.10}, number: {default: 1.10}}
jobs:
  a:
    matrix: {v: [3.10, 3.11]}
    run: [echo, 1.50, "${{ matrix.v }}", "${{ parameters.text }}", "${{ parameters.number }}"]
    env: {X: 0.10, Y: true}
    labels: {l: 2.0}
    retries: 2
    timeout: 1.50
  b: {task: own, args: {x: 1.50, n: 2}}
"""


def test_a_description_means_what_its_files_mean(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(VALUES)
    for path, parameters in ((EXAMPLES / "release.yaml", {"version": "1.10"}), (file, {})):
        data = json.loads(json.dumps(describe_file(path)))
        made = expand_file(path, parameters)
        workflow, jobs = expand(data, parameters)
        assert (workflow.name, jobs) == (made.workflow.name, made.jobs)


def test_what_cannot_stand_by_itself_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    for text, reason in (
        ("name: w\nparameters: {x: {}}\njobs:\n  a: {workflow: '${{ parameters.x }}'}\n", "a path"),
        ("name: w\njobs:\n  b: {run: [x]}\n  a: {workflow: w.yaml}\n", "recursion"),
        ("name: w\njobs: {}\n\ncolour: red\n", "colour"),
    ):
        file.write_text(text)
        with pytest.raises(Misdescribed, match=rf"w\.yaml:4: .*{reason}"):
            describe_file(file)
