"""Reads the texts that stand for a job as their readers would: the command line and Python."""

import shlex
import subprocess
from typing import Any

from cyclopts import App

import windlass
from windlass.cli.options.job import PLAIN, JobOptions
from windlass.client.builder import request_for
from windlass.domain.job.job import JobSpec, canonical_options

app = App(help_flags=[])


@app.command(name="submit")
def _submit(*command: str, job: JobOptions = PLAIN) -> JobSpec:
    return job.request(command)


def typed(line: str) -> JobSpec:
    """Returns the job that a command line describes, split as a shell does it."""
    return described(shlex.split(line))


def typed_in_shell(line: str) -> JobSpec:
    """Does the same with a real shell."""
    shown = line.replace("windlass", "printf '%s\\0' windlass", 1)
    split = subprocess.run(["bash", "-c", shown], capture_output=True, check=True)
    return described(split.stdout.decode().split("\0")[:-1])


def described(words: list[str]) -> JobSpec:
    """Returns the job that the words of a command line describe."""
    assert words[0] == "windlass"
    spec: JobSpec = app(words[1:], exit_on_error=False, result_action="return_value")
    return spec


class _Client:
    """Stands for `windlass.Client` in the text: returns the job instead of submitting it."""

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> "_Made":
        return _Made(request_for(task, args, kwargs))


class _Made:
    def __init__(self, spec: JobSpec) -> None:
        self.spec = spec

    def result(self) -> None: ...


class _Windlass:
    Client = _Client
    named = staticmethod(windlass.named)

    @staticmethod
    def JobSpec(**fields: Any) -> JobSpec:  # noqa: N802 - the name in the text
        return JobSpec(
            task=fields.pop("task"), args=fields.pop("args", None), **canonical_options(fields)
        )


def evaluated(text: str) -> JobSpec:
    """Returns the job that a program submits."""
    first, _, rest = text.partition("\n")
    assert first == "import windlass"
    space: dict[str, Any] = {"windlass": _Windlass, "print": lambda _: None}
    exec(rest, space)
    spec: JobSpec = space["job"].spec
    return spec
