"""The options that describe a job, for `submit` and `run`: flags made from `JobSpec`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from cyclopts import Parameter

from windlass.clock import RealClock
from windlass.domain.job.forms import JSON, NUMBER, PRIORITY, SWITCH
from windlass.domain.job.job import OPTIONS, JobOption, JobSpec
from windlass.domain.values.errors import InvalidInput

COMMAND_TASK: Final = "shell"  # runs the command after --
FLAGS: Final = {name: option for name, option in OPTIONS.items() if option.flag is not None}
_FIELD: Final = re.compile(r"jobs\[\d+\]\.(\w+)(.*)", re.DOTALL)


class _JobOptions:
    """What the job runs and what it needs."""

    def request(self, command: tuple[str, ...]) -> JobSpec:
        """Returns the job that these options and a command describe."""
        given = {name: getattr(self, name) for name in FLAGS}
        task = given["task"]
        if task is None and not command:
            raise InvalidInput("command", "a command after --, or --task with --args", "neither")
        if task is not None and command:
            raise InvalidInput("command", "either --task or a command after --", "both")
        now = RealClock().now_ms()
        fields = {n: _read(FLAGS[n], v, now) for n, v in given.items() if v not in (None, False)}
        if task is None:
            fields |= {"task": COMMAND_TASK, "args": {"argv": list(command)}}
        return JobSpec(**fields)


def _parameter(option: JobOption) -> tuple[str, Any, Any]:
    """Returns a field of the dataclass: the flag of an option."""
    kind: Any = str | None
    if option.form is SWITCH:
        kind = bool
    elif option.form is NUMBER:
        kind = int | None
    elif option.form.repeats:
        kind = list[str] | None
    parameter = Parameter(
        name=option.flag,
        help=f"{option.help} {option.note}".rstrip(),
        consume_multiple=False,
        allow_leading_hyphen=option.form is PRIORITY,
        show_default=None if isinstance(option.default, str) else False,
    )
    default = option.default if isinstance(option.default, str | bool) else None
    return option.name, Annotated[kind, parameter], default


if TYPE_CHECKING:
    JobOptions = _JobOptions
else:
    JobOptions = Parameter(name="*")(
        make_dataclass(
            "JobOptions",
            [_parameter(option) for option in FLAGS.values()],
            bases=(_JobOptions,),
            namespace={"__module__": __name__, "__doc__": _JobOptions.__doc__},
            frozen=True,
            kw_only=True,
        )
    )

PLAIN: Final = JobOptions()


@contextmanager
def named_by_flags() -> Iterator[None]:
    """Names options by their flags in errors that come from the server."""
    try:
        yield
    except InvalidInput as error:
        match = _FIELD.fullmatch(error.field)
        option = FLAGS.get(match[1]) if match else None
        if match is None or option is None:
            raise
        raise InvalidInput(f"{option.flag}{match[2]}", error.expected, error.got) from None


def _read(option: JobOption, value: Any, now: int) -> Any:
    if option.form is JSON:
        return _arguments(value)
    texts = value if isinstance(value, list) else [str(value)]
    return option.form.read(texts, str(option.flag), now)


def _arguments(text: str) -> Any:
    if text.startswith("@"):
        text = _file(Path(text[1:]))
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError as error:
        raise InvalidInput("--args", "JSON", str(error)) from None


def _file(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidInput("--args", f"a readable file after @ ({why})", str(path)) from None
