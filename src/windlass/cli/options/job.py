"""The options that describe a job, for `submit` and `run`: flags made from `JobSpec`."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_origin

import msgspec
from cyclopts import Parameter

from windlass.cli.options.flags import Misused
from windlass.domain.job.forms import JSON, NUMBER, PRIORITY, SWITCH
from windlass.domain.job.job import OPTIONS, JobOption, JobSpec
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.local_files import LocalFile, with_files

COMMAND_TASK: Final = "shell"  # runs the command after --
FLAGS: Final = {name: option for name, option in OPTIONS.items() if option.flag is not None}


class CommandFlag(NamedTuple):
    """A flag for an argument of the command's task."""

    flag: str
    help: str

    def parameter(self, name: str) -> tuple[str, Any, Any]:
        """Returns a field of the dataclass."""
        parameter = Parameter(name=self.flag, help=self.help, consume_multiple=False)
        return name, Annotated[list[str] | None, parameter], None


# By their names among the arguments of the task.
COMMAND_FLAGS: Final = {
    "artifacts": CommandFlag(
        "--artifact", "Files of the command to keep, such as 'out/*.log'. Repeatable."
    ),
    "inputs": CommandFlag(
        "--input",
        "A file to put into the working directory first. A local one, FILE or FILE:NAME, is sent "
        "with the job. JOB/NAME or JOB/NAME=PATH is an artifact, and the command waits for that "
        "job. Repeatable.",
    ),
    "env": CommandFlag(
        "--env",
        "An environment variable of the command, NAME=VALUE; NAME alone takes its value from "
        "your environment. Repeatable.",
    ),
}
_FIELD: Final = re.compile(r"(?:jobs(?:\[\d+\])?\.)?(\w+)(.*)", re.DOTALL)
_ARGUMENT: Final = re.compile(r"\.(\w+)(.*)", re.DOTALL)


class _JobOptions:
    """What the job runs and what it needs."""

    def request(self, command: tuple[str, ...]) -> JobSpec:
        """Returns the job that these options and a command describe."""
        given = {name: getattr(self, name) for name in FLAGS}
        task = given["task"]
        if task is None and not command:
            raise Misused("nothing to run: give a command after --, or --task")
        if task is not None and command:
            raise Misused("--task and a command after -- exclude each other: give one of them")
        fields = {
            name: _read(FLAGS[name], value)
            for name, value in given.items()
            if value is not None and value is not False  # 0 is a value
        }
        beside = {name: getattr(self, name) for name in COMMAND_FLAGS if getattr(self, name)}
        if task is None:
            fields |= {"task": COMMAND_TASK} | _of_command(command, beside, fields)
        elif beside:
            flag = COMMAND_FLAGS[next(iter(beside))].flag
            raise Misused(f"{flag} goes with a command after --, not with --task")
        made = JobSpec(**fields)
        local = "inputs" in beside and any("file" in one for one in made.args["inputs"])
        return with_files(made) if local else made


def _of_command(
    command: tuple[str, ...], beside: dict[str, list[str]], fields: dict[str, Any]
) -> dict[str, Any]:
    """Returns the arguments of a command, and the jobs that its inputs wait for."""
    args: dict[str, Any] = {"argv": list(command)}
    if "args" in fields:
        raise Misused("--args goes with --task, not with a command")
    if "env" in beside:
        args["env"] = dict(_variable(text) for text in beside["env"])
    if "artifacts" in beside:
        args["artifacts"] = beside["artifacts"]
    if "inputs" not in beside:
        return {"args": args}
    args["inputs"] = [_input(text) for text in beside["inputs"]]
    waits = {*fields.get("after", ()), *fields.get("after_any", ())}
    jobs = [one["job"] for one in args["inputs"] if "job" in one]
    makers = dict.fromkeys(job for job in jobs if job not in waits)
    return {"args": args, "after": (*fields.get("after", ()), *makers)}


def _input(text: str) -> dict[str, Any]:
    """Parses JOB/NAME, JOB/NAME=PATH, FILE or FILE:NAME."""
    job, separator, rest = text.partition("/")
    if not separator or not job.isascii() or not job.isdigit():
        return _local_input(text)
    name, _, path = rest.partition("=")
    return {"job": int(job), "artifact": name} | ({"path": path} if path else {})


def _local_input(text: str) -> dict[str, Any]:
    """Parses FILE or FILE:NAME; a file whose own name has a colon is found too."""
    path, separator, name = text.rpartition(":")
    if not separator or Path(text).is_file():
        path, name = text, ""
    file = Path(path)
    if not file.is_file():
        expected = "a file, FILE:NAME, or an artifact such as 12/out.txt"
        hint = f"{path} is a directory: pack it into one file" if file.is_dir() else ""
        raise InvalidInput("--input", expected, text, hint or f"there is no file {path} here")
    return {"file": LocalFile(file, {"path": name or file.name})}


def _variable(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    own = None if separator else os.environ.get(name)
    if not name or (not separator and own is None):
        raise InvalidInput("--env", "NAME=VALUE, or the NAME of a variable that is set here", text)
    return name, value if own is None else own


def _parameter(option: JobOption) -> tuple[str, Any, Any]:
    """Returns a field of the dataclass: the flag of an option."""
    kind: Any = str | None
    if get_origin(option.type) is Literal:
        kind = option.type
    elif option.form is SWITCH:
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
            [_parameter(option) for option in FLAGS.values()]
            + [flag.parameter(name) for name, flag in COMMAND_FLAGS.items()],
            bases=(_JobOptions,),
            namespace={"__module__": __name__, "__doc__": _JobOptions.__doc__},
            frozen=True,
            kw_only=True,
        )
    )

PLAIN: Final = JobOptions()


@contextmanager
def named_by_flags(is_command: bool = False) -> Iterator[None]:
    """Names options by their flags in errors that come from the server.

    With `is_command`, some flags stand for arguments of the command's task.
    """
    try:
        yield
    except InvalidInput as error:
        flag = _flag_of(error.field, is_command)
        if flag is None:
            raise
        raise InvalidInput(flag, error.expected, error.got, error.hint) from None


def _flag_of(field: str, is_command: bool) -> str | None:
    """Returns the flag for a field of a job, `args.env.A` or, in a list, `jobs[0].args.env.A`."""
    match = _FIELD.fullmatch(field)
    if match is None or match[1] not in FLAGS:
        return None
    of_command = is_command and match[1] == "args"
    argument = _ARGUMENT.fullmatch(match[2]) if of_command else None
    if argument is not None and argument[1] in COMMAND_FLAGS:
        return f"{COMMAND_FLAGS[argument[1]].flag}{argument[2]}"
    return f"{FLAGS[match[1]].flag}{match[2]}"


def _read(option: JobOption, value: Any) -> Any:
    if option.form is JSON:
        return _arguments(value)
    texts = value if isinstance(value, list) else [str(value)]
    return option.form.of_texts(texts, str(option.flag))


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
