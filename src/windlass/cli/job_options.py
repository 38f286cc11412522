"""The options that describe a job, shared by `submit` and `run`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from windlass.domain.errors import InvalidInput
from windlass.wire.jobs import JobRequest

Many = Annotated[list[str] | None, Parameter(consume_multiple=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """What a job is and what it needs.

    Parameters
    ----------
    task
        The kind of work, with its arguments in --args, instead of a command.
    args
        The arguments of the task as JSON, or @FILE to read them from.
    target
        The architecture the worker must have, such as arm64.
    queue
        live, default, batch or a queue of your own.
    priority
        high, medium, low or a number.
    requires
        What the worker must offer, such as 'memory>=4GiB'. May be given several times.
    resources
        What the job takes, such as cpus=2.
    secret
        The name of a secret of the worker's that the job needs. May be given several times.
    after
        The id of a job that must complete first. May be given several times.
    timeout
        How long it may run: 90, 90s, 15m, 6h.
    retries
        How often it is tried again after a failure.
    key
        The same key names the same job, however often it is submitted.
    label
        name=value, for finding it again. May be given several times.
    name
        What to call it.
    """

    task: str | None = None
    args: str | None = None
    target: str | None = None
    queue: str = "default"
    priority: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None
    requires: Many = None
    resources: Many = None
    secret: Many = None
    after: Many = None
    timeout: str | None = None
    retries: int | None = None
    key: str | None = None
    label: Many = None
    name: str | None = None

    def request(self, command: tuple[str, ...]) -> JobRequest:
        """The job that these options and a command describe."""
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
            timeout=self.timeout,
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
        raise InvalidInput("args", "a readable file of JSON after @", str(error)) from None


def _split(texts: list[str] | None) -> list[str]:
    return [part for text in texts or () for part in text.split(",") if part]


def _pair(text: str, field: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInput(field, "name=value", text)
    return name, value


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(field, "the id of a job", text)
    return int(text)
