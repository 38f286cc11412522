"""The task `shell`: a program with its arguments, never a line for a shell to interpret."""

import re
from typing import Annotated, Any, Final

import msgspec

from windlass.domain.tasks.kind import TaskPlan, about
from windlass.domain.tasks.references import FILE, RESULT, TEXT, replaced
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms, parse_size

# arguments that must be texts, even if results replace them
TEXTS: Final = ("argv", "env", "stdin")
MAX_WORDS: Final = 100_000
MAX_FILES: Final = 1_000
MAX_OUTPUTS: Final = 100
OUTPUT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
OUTPUT_FORM: Final = "names of letters, digits, _ and -"
PATH_LIMIT: Final = 1_000
OWN_START: Final = "WINDLASS_"  # prefix of variables that only the worker sets


class Input(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An artifact placed into the working directory before the program starts.

    `artifact` is the name of one of `job`'s, or an object that names both; a `{"$lookup": NAME}`
    becomes one when the job is assigned. `path` is where it goes; by default it keeps its name.
    `file` is an uploaded file instead, `{"$file": {"sha256": …, "path": …}}`, which the worker
    places before the job starts.
    """

    artifact: str | dict[str, Any] = {}
    file: Any = None
    job: int | None = None
    path: str | None = None


class ShellArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments. `artifacts` are globs of files to keep; limits are per process.

    `outputs` are values that the program writes as NAME=VALUE to the file $WINDLASS_OUTPUTS; they
    become the job's result.

    `memory` is bytes or text ("512MiB"), `cpu_time` seconds or text ("90s").
    """

    argv: Annotated[list[str], about("The program and its arguments.")]
    env: Annotated[
        dict[str, str], about('Environment variables: {"NAME": "value"}.')
    ] = {}  # fmt: skip
    stdin: Annotated[str | None, about("The text of its standard input.")] = None
    inputs: Annotated[
        list[Input],
        about('Artifacts of other jobs to place in its folder: [{"job": 7, "artifact": "a.zip"}].'),
    ] = []
    artifacts: Annotated[list[str], about("Globs of files to keep, such as report/*.html.")] = []
    outputs: Annotated[
        list[str],
        about("Names of values that it writes to $WINDLASS_OUTPUTS; they become its result."),
    ] = []
    memory: Annotated[int | str | None, about("Memory limit of each process, such as 512MiB.")] = (
        None
    )
    cpu_time: Annotated[
        float | str | None, about("CPU time limit of each process, such as 90s.")
    ] = None


class ShellTask:
    """Implements `TaskKind`."""

    name = "shell"

    def check(self, args: object, field: str = "args") -> TaskPlan:
        """Returns the arguments as `ShellArgs`; raises `InvalidInput` for a wrong one.

        Words and variables may be results of other jobs, which are filled in when the job is
        assigned.
        """
        try:
            return TaskPlan(read_args(args, field))
        except InvalidInput:
            filled = _filled(args)
            if filled == args:
                raise
            return TaskPlan(read_args(filled, field))


def read_args(args: object, field: str = "args") -> ShellArgs:
    """Checks the arguments of a shell job."""
    shell = convert({} if args is None else args, ShellArgs, field)
    _check_words(shell.argv, field)
    if shell.env:
        _check_env(shell.env, field)
    if shell.stdin is not None and "\x00" in shell.stdin:
        raise InvalidInput(f"{field}.stdin", "text without NUL characters", "a NUL character")
    if shell.inputs:
        _check_inputs(shell.inputs, field)
    if shell.artifacts:
        _check_artifacts(shell.artifacts, field)
    if shell.outputs:
        _check_outputs(shell.outputs, field)
    memory_bytes(shell, field)
    cpu_seconds(shell, field)
    return shell


def _filled(args: object) -> object:
    """Returns arguments with a text instead of each reference to a result."""
    return replaced(replaced(args, TEXT, lambda _: "-"), RESULT, lambda _: "-")


def _check_outputs(names: list[str], field: str) -> None:
    if len(names) > MAX_OUTPUTS:
        raise InvalidInput(f"{field}.outputs", f"at most {MAX_OUTPUTS}", len(names))
    for name in names:
        if not OUTPUT_NAME.fullmatch(name):
            raise InvalidInput(f"{field}.outputs", OUTPUT_FORM, name)


def memory_bytes(shell: ShellArgs, field: str = "args") -> int:
    """Returns the memory limit; 0 means none."""
    return 0 if shell.memory is None else parse_size(shell.memory, f"{field}.memory")


def cpu_seconds(shell: ShellArgs, field: str = "args") -> int:
    """Returns the CPU time limit, in whole seconds from 1; 0 means none."""
    if shell.cpu_time is None:
        return 0
    return max(1, -(-parse_duration_ms(shell.cpu_time, f"{field}.cpu_time") // 1000))


def _check_words(argv: list[str], field: str) -> None:
    if not argv or len(argv) > MAX_WORDS:
        raise InvalidInput(f"{field}.argv", f"a list of 1 to {MAX_WORDS} words", len(argv))
    if not argv[0]:
        raise InvalidInput(f"{field}.argv[0]", "the name of a program", "nothing")
    for index, word in enumerate(argv):
        if "\x00" in word:
            where = f"{field}.argv[{index}]"
            raise InvalidInput(where, "text without NUL characters", "a NUL character")


def _check_env(env: dict[str, str], field: str) -> None:
    for name, value in env.items():
        where = f"{field}.env.{name}"
        if not name or "=" in name or "\x00" in name:
            raise InvalidInput(f"{field}.env", "names without = and NUL", name)
        if name.startswith(OWN_START):
            raise InvalidInput(where, f"a name that does not start with {OWN_START}", name)
        if "\x00" in value:
            raise InvalidInput(where, "text without NUL characters", "a NUL character")


def _check_inputs(inputs: list[Input], field: str) -> None:
    if len(inputs) > MAX_FILES:
        raise InvalidInput(f"{field}.inputs", f"at most {MAX_FILES}", len(inputs))
    for index, item in enumerate(inputs):
        where = f"{field}.inputs[{index}]"
        if item.file is not None:
            _check_file(item, where)
        elif isinstance(item.artifact, str):
            check_path(item.artifact, f"{where}.artifact")
            if item.job is None or not 1 <= item.job <= 2**62:
                raise InvalidInput(f"{where}.job", "the id of a job", item.job)
        elif not item.artifact:
            raise InvalidInput(f"{where}.artifact", "a name, or an object with a name", {})
        if item.path is not None:
            check_path(item.path, f"{where}.path")


def _check_file(item: Input, where: str) -> None:
    if item.artifact or item.job is not None or item.path is not None:
        raise InvalidInput(where, "either a file or an artifact", "both")
    if isinstance(item.file, str):
        return  # The worker has placed it, and says where.
    named = item.file.get(FILE) if isinstance(item.file, dict) and len(item.file) == 1 else None
    path = named.get("path") if isinstance(named, dict) else None
    if not isinstance(path, str):
        expected = f'{{"{FILE}": {{"sha256": …, "path": …}}}}'
        raise InvalidInput(f"{where}.file", expected, item.file)
    check_path(path, f"{where}.file.path")


def _check_artifacts(patterns: list[str], field: str) -> None:
    if len(patterns) > MAX_FILES:
        raise InvalidInput(f"{field}.artifacts", f"at most {MAX_FILES}", len(patterns))
    for index, pattern in enumerate(patterns):
        check_path(pattern, f"{field}.artifacts[{index}]")


def check_path(path: str, field: str) -> None:
    """Raises `InvalidInput` unless this is a path below the working directory."""
    parts = path.split("/")
    if not path or len(path) > PATH_LIMIT or not path.isprintable():
        raise InvalidInput(field, f"a printable path of 1 to {PATH_LIMIT} characters", path)
    if path.startswith(("/", "~")) or ".." in parts or parts[-1] in ("", "."):
        raise InvalidInput(field, "a path below the working directory", path)
