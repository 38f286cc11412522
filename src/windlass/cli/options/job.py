"""The options that describe a job, for `submit` and `run`."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from cyclopts import Parameter

from windlass.cli.options.flags import Flag, Many, Priority
from windlass.clock import RealClock
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms
from windlass.domain.values.times import format_moment
from windlass.wire.jobs import JobRequest, Limit, RateLimit

_DATE: Final = re.compile(r"\d{4}-")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What the job runs and what it needs.

    Parameters
    ----------
    task
        The task to run, with its arguments in --args, instead of a command.
    args
        The task's arguments as JSON, or @FILE to read them from a file.
    target
        The architecture the worker must have, such as arm64.
    queue
        live, default, batch or a queue of your own.
    priority
        high, medium, low or a number.
    requires
        What the worker must offer, such as 'memory>=4GiB'. Repeatable.
    resources
        What the job uses, such as cpus=2; several are comma-separated. Repeatable.
    secret
        The name of a worker secret that the job needs. Repeatable.
    after
        The id of a job that must complete first. Repeatable.
    workflow
        The id of an unfinished workflow to join.
    timeout
        How long it may run: 90, 90s, 15m, 6h.
    not_before
        The earliest start: a time such as 2030-01-02T03:04:05Z, or a duration from now.
    start_before
        Cancel it if it has not started by then; a time or a duration from now.
    finish_before
        Fail it if it has not ended by then; a time or a duration from now.
    capability_grace
        How long it waits while no known worker can run it: a duration, 0 or never.
    prefers
        What the worker should have if possible, such as 'cache:repo==linux'. Never delays the
        job. Repeatable.
    apart
        Never run two jobs with the same value here on one worker at the same time.
    concurrency
        KEY or KEY=MAX: how many jobs with this key run at the same time; 1 without MAX.
    rate
        KEY=MAX/TIME, such as api=10/1m: how many jobs with this key start in that time.
    preemptible
        Jobs in preempting queues may take its worker; it is queued again.
    retries
        How many times to retry it after a failure.
    key
        Submitting the same key again returns the same job.
    label
        name=value, to find it by. Repeatable.
    name
        A name to show for it.
    """

    task: str | None = None
    args: str | None = None
    target: str | None = None
    queue: str = "default"
    priority: Priority = None
    requires: Many = None
    resources: Many = None
    secret: Many = None
    after: Many = None
    workflow: int | None = None
    timeout: str | None = None
    not_before: str | None = None
    start_before: str | None = None
    finish_before: str | None = None
    capability_grace: str | None = None
    prefers: Many = None
    apart: str | None = None
    concurrency: str | None = None
    rate: str | None = None
    preemptible: Flag = False
    retries: int | None = None
    key: str | None = None
    label: Many = None
    name: str | None = None

    def request(self, command: tuple[str, ...]) -> JobRequest:
        """Returns the job that these options and a command describe."""
        if self.task is None and not command:
            raise InvalidInput("command", "a command after --, or --task with --args", "neither")
        if self.task is not None and command:
            raise InvalidInput("command", "either --task or a command after --", "both")
        return JobRequest(
            task=self.task or "shell",
            args=_arguments(self.args) if self.task is not None else {"argv": list(command)},
            name=self.name,
            target=self.target,
            queue=self.queue,
            priority=self.priority,
            requires=self.requires or [],
            resources=dict(_pair(text, "resources") for text in _split(self.resources)),
            secrets=self.secret or [],
            after=[_number(text, "after") for text in self.after or ()],
            workflow=self.workflow,
            timeout=self.timeout,
            not_before=_moment(self.not_before, "not-before"),
            start_before=_moment(self.start_before, "start-before"),
            finish_before=_moment(self.finish_before, "finish-before"),
            capability_grace=self.capability_grace,
            prefers=self.prefers or [],
            apart=self.apart,
            concurrency=_concurrency(self.concurrency),
            rate=_rate(self.rate),
            preemptible=self.preemptible,
            retries=self.retries,
            key=self.key,
            labels=dict(_pair(text, "label") for text in self.label or ()),
        )


PLAIN: Final = JobOptions()


def _arguments(text: str | None) -> Any:
    if text is None:
        return None
    if text.startswith("@"):
        text = _file(Path(text[1:]))
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError as error:
        raise InvalidInput("args", "JSON", str(error)) from None


def _file(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidInput("args", f"a readable file after @ ({why})", str(path)) from None


def _split(texts: list[str] | None) -> list[str]:
    return [part for text in texts or () for part in text.split(",") if part]


def _pair(text: str, field: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInput(field, "name=value", text)
    return name, value


def _concurrency(text: str | None) -> Limit | None:
    if text is None:
        return None
    key, separator, most = text.rpartition("=")
    if not separator:
        return Limit(text)
    if not key or not (most.isascii() and most.isdigit()):
        raise InvalidInput("concurrency", "KEY or KEY=MAX, such as repo-42=1", text)
    return Limit(key, int(most))


def _rate(text: str | None) -> RateLimit | None:
    if text is None:
        return None
    key, _, numbers = text.rpartition("=")
    most, separator, per = numbers.partition("/")
    if not key or not separator or not (most.isascii() and most.isdigit()):
        raise InvalidInput("rate", "KEY=MAX/TIME, such as api=10/1m", text)
    return RateLimit(key, per, int(most))


def _moment(text: str | None, field: str) -> str | None:
    """Returns a time unchanged, and a duration as the time that long from now."""
    if text is None or _DATE.match(text):
        return text
    try:
        return format_moment(RealClock().now_ms() + parse_duration_ms(text, field))
    except InvalidInput:
        expected = "a time such as 2030-01-02T03:04:05Z, or a duration from now such as 15m"
        raise InvalidInput(field, expected, text) from None


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(field, "the id of a job", text)
    return int(text)
