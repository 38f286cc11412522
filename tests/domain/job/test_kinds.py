"""Kinds of work: which jobs foretell each other."""

import pytest

from windlass.domain.job.job import JobSpec, encode_spec
from windlass.domain.job.kinds import NAME_LIMIT, kinds_of


@pytest.mark.parametrize(
    ("argv", "kinds"),
    [
        (["sleep", "2"], ("sleep 2", "sleep")),
        (["/usr/bin/sleep", "2", "3"], ("sleep 2", "sleep")),
        (["make"], ("make",)),
        (["python", "-m", "pytest", "tests"], ("python -m pytest", "python")),
        (["sh", "-c", "sleep 2 && echo done"], ("sleep 2", "sleep")),
        (["bash", "-ec", "/opt/bin/encode a.mp4"], ("encode a.mp4", "encode")),
        (["sh", "script.sh"], ("sh script.sh", "sh")),
        (["sh", "-c", ""], ("sh -c ", "sh")),
    ],
)
def test_a_program_and_its_first_argument_are_a_kind(argv: list[str], kinds: tuple[str]) -> None:
    assert kinds_of(encode_spec(JobSpec(task="shell", args={"argv": argv}))) == kinds


def test_functions_and_other_tasks_are_kinds() -> None:
    call = {"function": "shop.tasks:send", "args": [1], "kwargs": {}}
    assert kinds_of(encode_spec(JobSpec(task="python", args=call))) == ("shop.tasks:send",)
    assert kinds_of(encode_spec(JobSpec(task="resize", args={"width": 3}))) == ("resize",)
    assert kinds_of(encode_spec(JobSpec(task="python", args=call, kind="mail"))) == ("mail",)


def test_odd_arguments_have_a_kind_too() -> None:
    for task, args in (("shell", None), ("shell", {"argv": 3}), ("python", []), ("python", None)):
        assert kinds_of(encode_spec(JobSpec(task=task, args=args))) == (task,)
    long = kinds_of(encode_spec(JobSpec(task="shell", args={"argv": ["x", "y" * 999]})))
    assert len(long[0]) == NAME_LIMIT
