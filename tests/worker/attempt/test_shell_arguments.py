"""What a shell job accepts: a misfit is named at submit."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.running import run
from windlass.clock import RealChance, RealClock
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import Validator
from windlass.domain.tasks.kind import TaskPlan
from windlass.domain.tasks.shell import ShellArgs, ShellTask, cpu_seconds, memory_bytes
from windlass.domain.values.errors import InvalidInput
from windlass.engine.engine import Engine
from windlass.store.sqlite.memory import MemoryStore


def check(args: object) -> ShellArgs:
    plan = ShellTask().check(args, "jobs[0].args")
    assert isinstance(plan.args, ShellArgs)
    return plan.args


def test_everything_a_shell_job_may_say() -> None:
    args = check(
        {
            "argv": ["make", "all"],
            "env": {"CC": "clang"},
            "stdin": "yes\n",
            "inputs": [
                {"job": 7, "artifact": "out/a.tar", "path": "a.tar"},
                {"artifact": {"$lookup": "environments/bookworm"}},
            ],
            "artifacts": ["out/*.bin", "**/report.txt"],
            "memory": "512MiB",
            "cpu_time": "1.5s",
        }
    )
    assert memory_bytes(args) == 512 * 1024 * 1024
    assert cpu_seconds(args) == 2


@pytest.mark.parametrize(
    ("args", "field"),
    [
        (None, "jobs[0].args"),
        ("echo hello", "jobs[0].args"),
        ({}, "jobs[0].args"),
        ({"argv": "echo hello"}, "jobs[0].args.argv"),
        ({"argv": []}, "jobs[0].args.argv"),
        ({"argv": [""]}, "jobs[0].args.argv[0]"),
        ({"argv": ["a", 1]}, "jobs[0].args.argv"),
        ({"argv": ["a", "b\x00"]}, "jobs[0].args.argv[1]"),
        ({"argv": ["a"], "shell": True}, "jobs[0].args"),
        ({"argv": ["a"], "env": {"A=B": "c"}}, "jobs[0].args.env"),
        ({"argv": ["a"], "env": {"A": "\x00"}}, "jobs[0].args.env.A"),
        ({"argv": ["a"], "env": {"WINDLASS_JOB": "1"}}, "jobs[0].args.env.WINDLASS_JOB"),
        ({"argv": ["a"], "stdin": "\x00"}, "jobs[0].args.stdin"),
        ({"argv": ["a"], "artifacts": ["../x"]}, "jobs[0].args.artifacts[0]"),
        ({"argv": ["a"], "artifacts": ["/etc/*"]}, "jobs[0].args.artifacts[0]"),
        ({"argv": ["a"], "artifacts": ["ok", "a/../../b"]}, "jobs[0].args.artifacts[1]"),
        ({"argv": ["a"], "inputs": [{"artifact": "x"}]}, "jobs[0].args.inputs[0].job"),
        ({"argv": ["a"], "inputs": [{"job": 1, "artifact": "x", "path": "../y"}]},
         "jobs[0].args.inputs[0].path"),
        ({"argv": ["a"], "inputs": [{"job": 1, "artifact": ""}]},
         "jobs[0].args.inputs[0].artifact"),
        ({"argv": ["a"], "memory": "lots"}, "jobs[0].args.memory"),
        ({"argv": ["a"], "cpu_time": -1}, "jobs[0].args.cpu_time"),
    ],
)  # fmt: skip
def test_a_misfit_is_named(args: object, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(args)
    assert refused.value.field.startswith(field)


class LongFilms:
    """A task that needs a tool, and knows how long its input is."""

    name = "film"

    def check(self, args: object, field: str) -> TaskPlan:
        if args is None:
            raise InvalidInput(field, "a film", args)
        return TaskPlan(args, ("ffmpeg:available == true",), 60_000)


def test_what_a_task_says_becomes_part_of_its_jobs() -> None:
    validator = Validator(Config(), {"film": LongFilms()})
    prepared = validator.validate(JobSpec(task="film", args={"a": 1}))
    assert [clause.key for clause in prepared.shape.requires] == ["ffmpeg:available"]
    assert prepared.spec.requires == ()
    assert prepared.template.plain
    assert not validator.validate(JobSpec(task="other", args=None)).shape.requires


def test_an_engine_refuses_at_submit(tmp_path: Path) -> None:
    async def scene() -> None:
        store = MemoryStore(RealClock(), "s1")
        tasks: dict[str, Any] = {"shell": ShellTask(), "film": LongFilms()}
        engine = Engine(store, Config(), RealChance(), tasks=tasks)
        await engine.start()
        good = JobSpec(task="shell", args={"argv": ["true"]})
        with pytest.raises(InvalidInput) as refused:
            await engine.submit([good, JobSpec(task="shell", args={"argv": []})])
        assert refused.value.field == "jobs[1].args.argv"
        assert (await engine.submit([good, JobSpec(task="unknown", args=5)])).ids
        await engine.close()
        await store.close()

    run(scene())
