"""The command line and the Python shown for a job describe that job, whatever its values are."""

from typing import Any

import pytest

from tests.domain.job.equivalent_texts import evaluated, typed_in_shell
from windlass.domain.explain.equivalents import command_line, equivalents, local_call, python_code
from windlass.domain.job.job import JobSpec

ODD = [
    "plain", "", "-x", "--after", "it's", 'a "b"', "$HOME `id` $(id)", "; rm -rf x", "a\nb",
    "\x1b[31mred", "ü → 日本", "back\\slash", "*", "\u202egnp", "!history",
]  # fmt: skip

JOBS = [
    JobSpec(task="shell", args={"argv": ["echo", *ODD]}),
    JobSpec(task="shell", args={"argv": ["a"], "env": {"A": "-1", "B": "x y"}, "artifacts": ["*"]}),
    JobSpec(
        task="shell",
        after=(3, 4),
        args={"argv": ["a"], "inputs": [{"job": 3, "artifact": "b"},
                                        {"job": 4, "artifact": "c", "path": "d"}]},
    ),
    JobSpec(task="shell", args={"argv": ["cat"], "stdin": "hello", "memory": "1GiB"}),
    JobSpec(task="python", args={"function": "shop:send", "args": ODD, "kwargs": {}}),
    JobSpec(task="resize", args=[1, None, True, {"a": 2.5}]),
    JobSpec(task="resize"),
    JobSpec(task="resize", args={"not a name": 1}),
    JobSpec(task="resize", args={"width": 3}, name="it's", labels={"a": "; b", "c": "-d"}),
]  # fmt: skip


@pytest.mark.parametrize("spec", JOBS)
def test_both_texts_describe_the_job(spec: JobSpec) -> None:
    assert typed_in_shell(command_line(spec)) == spec
    assert evaluated(python_code(spec)) == spec


def test_control_characters_are_visible_in_all_texts() -> None:
    spec = JobSpec(task="python", args={"function": "a:b", "args": ODD}, name="\x1b]0;x\x07")
    assert all(one == "\n" or one.isprintable() for text in equivalents(spec) for one in str(text))


def test_who_submitted_it_is_not_an_option() -> None:
    spec = JobSpec(task="t", submitted_by="ann")
    assert "ann" not in command_line(spec) + python_code(spec)


@pytest.mark.parametrize(
    ("task", "args", "path", "call"),
    [
        ("python", {"function": "a.b:c", "args": [1, "x y"], "kwargs": {}}, None,
         """windlass call a.b:c '[1,"x y"]'"""),
        ("python", {"function": "a.b:c", "kwargs": {"n": 1}}, None,
         """windlass call a.b:c '{"n":1}'"""),
        ("python", {"function": "a.b:c"}, None, "windlass call a.b:c"),
        ("python", {"function": "a.b:c", "args": [1], "kwargs": {"n": 1}}, None, None),
        ("resize", {"n": 1}, "a.b:resize", """windlass call a.b:resize '{"n":1}'"""),
        ("resize", {"n": 1}, None, None),
        ("shell", {"argv": ["a"]}, None, None),
    ],
)  # fmt: skip
def test_functions_can_be_called_without_a_queue(
    task: str, args: Any, path: str | None, call: str | None
) -> None:
    assert local_call(JobSpec(task=task, args=args), path) == call
