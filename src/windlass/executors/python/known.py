"""What a worker knows about functions: those that are tasks, those it has, and those it lacks."""

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from pkgutil import iter_modules
from sys import modules as imported
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from windlass.domain.matching.functions import KNOWN, MISSING, SCHEMAS, UNSEEN, VERSIONS
from windlass.domain.tasks.python import FunctionTask, read_call
from windlass.domain.tasks.reported import ReportedTask, pack
from windlass.domain.values.errors import InvalidInput
from windlass.messages.files import StackThread
from windlass.ports.executor import JobContext, Result
from windlass.tasks.task import PYTHON, Task, named_tasks
from windlass.tasks.values.schema import arguments_schema, is_positional

HIDDEN: Final = (
    f"{{}} is in the folder in which the worker was started, {UNSEEN}: start it in a folder "
    "outside your home, or with --isolation process"
)
MAX_ENTRIES: Final = 200  # entries of each kind in the metadata of a worker


@runtime_checkable
class Calls(Protocol):
    """The executor of Python functions."""

    async def call(
        self, context: JobContext, function: str, args: list[Any], kwargs: dict[str, Any], task: str
    ) -> Result: ...


class NamedFunction:
    """Implements `Executor`; the processes belong to `python`, which also ends them."""

    def __init__(self, task: str, path: str, python: Calls) -> None:
        self.task = task
        self._path = path
        self._python = python

    async def run(self, context: JobContext) -> Result:
        """Calls the function with the job's arguments."""
        call = read_call(context.args)
        return await self._python.call(context, self._path, call.args, call.kwargs, self.task)

    async def stack(self, context: JobContext) -> list[StackThread] | None:
        """Returns the stack of this attempt's function."""
        read = getattr(self._python, "stack", None)
        return None if read is None else await read(context)

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


def import_modules(names: Iterable[str]) -> None:
    """Imports these here, from the working directory too; raises `InvalidInput`."""
    for name in names:
        if os.getcwd() not in sys.path and "" not in sys.path:
            sys.path.insert(0, os.getcwd())
        try:
            importlib.import_module(name)
        except Exception as error:
            expected = "a module that can be imported here"
            raise InvalidInput("import", expected, f"{name}: {error}") from error


def modules_of(packages: Iterable[str]) -> list[str]:
    """Imports packages with all their submodules and returns their names."""
    found: list[str] = []
    for package in packages:
        import_modules([package])
        found.append(package)
        places = getattr(sys.modules[package], "__path__", None)
        for info in iter_modules(places, f"{package}.") if places is not None else ():
            if info.name.rpartition(".")[2] != "__main__":  # Importing it would run it.
                found += modules_of([info.name])
    return found


def named_kinds(reserved: Iterable[str]) -> dict[str, FunctionTask]:
    """Returns the kinds of the named functions that this process has imported."""
    return {name: FunctionTask(name, task.signature) for name, task in _named(reserved)}


def named_executors(python: Calls, reserved: Iterable[str]) -> dict[str, NamedFunction]:
    """Returns executors for the named functions that this process has imported."""
    return {name: NamedFunction(name, task.path, python) for name, task in _named(reserved)}


def _named(reserved: Iterable[str]) -> list[tuple[str, Task[..., Any]]]:
    taken = set(reserved)
    found = []
    for name, task in named_tasks().items():
        if name in taken:
            raise InvalidInput(f"the task name of {task!r}", "one that is not taken", name)
        if "<" not in task.function.__qualname__:  # Otherwise no other process finds it.
            found.append((name, task))
    return found


class Noted(NamedTuple):
    """Why a function is missing, with a hint; `forgot`: an older entry was dropped for it."""

    why: str
    forgot: bool


class MissingFunctions:
    """The functions that jobs asked for and this worker lacks, with the reasons.

    `changed` is called when there are more; the oldest are forgotten, and tried again.
    """

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.unseen: Path | None = None  # where the worker was started, if jobs cannot see that
        self._reasons: dict[str, str] = {}

    def note(self, function: str, why: str) -> "Noted":
        """Records why a function cannot be run here."""
        self._reasons.pop(function, None)
        forgets = len(self._reasons) >= MAX_ENTRIES
        if forgets:
            del self._reasons[next(iter(self._reasons))]
        self._reasons[function] = why = why + self._hint(function)
        self.changed()
        return Noted(why, forgets)

    def _hint(self, function: str) -> str:
        """Returns a hint for a function that is missing though it is in the worker's folder."""
        top = function.partition(":")[0].partition(".")[0]
        places = () if self.unseen is None else (self.unseen / f"{top}.py", self.unseen / top)
        found = next((place.name for place in places if place.exists()), None)
        return "" if found is None else f"; {HIDDEN.format(found)}"

    @property
    def modules(self) -> set[str]:
        """Returns the modules of these functions."""
        return {name.partition(":")[0] for name in self._reasons if ":" in name}

    @property
    def metadata(self) -> dict[str, Any]:
        """Returns what the server is told."""
        return {MISSING: dict(self._reasons)} if self._reasons else {}


def describe_modules(modules: Iterable[str]) -> dict[str, Any]:
    """Returns the metadata of the functions in these imported modules, and of named tasks."""
    versions: dict[str, str | None] = {}
    tasks: dict[str, Task[..., Any]] = {}
    for name in modules:
        for found in vars(imported[name]).values() if name in imported else ():
            if isinstance(found, Task) and found.function.__module__ == name:
                versions[found.path] = found.version
                if found.defaults.task == PYTHON:
                    tasks[found.path] = found
    known = sorted(versions)
    for task, made in named_tasks().items():
        versions[task] = made.version
        if "<" not in made.function.__qualname__:  # Otherwise no other process finds it.
            tasks[task] = made
    declared = {name: version for name, version in sorted(versions.items()) if version is not None}
    metadata: dict[str, Any] = {}
    if known:
        metadata[KNOWN] = known if len(known) <= MAX_ENTRIES else _summary(known)
    if declared:
        metadata[VERSIONS] = dict(list(declared.items())[:MAX_ENTRIES])
    if tasks:
        metadata[SCHEMAS] = pack(_reported(name, tasks[name]) for name in sorted(tasks))
    return metadata


def _reported(name: str, task: Task[..., Any]) -> ReportedTask:
    """Returns the report about one function, so that others can fill in its arguments."""
    lines = (task.function.__doc__ or "").strip().splitlines()
    options = msgspec.to_builtins(msgspec.structs.replace(task.defaults, task="", args=None))
    del options["task"]
    return ReportedTask(
        name=name,
        path=task.path,
        doc=lines[0].strip() if lines else "",
        schema=arguments_schema(task.function),
        options=options,
        positional=is_positional(task.signature),
        order=list(task.signature.parameters),
        version=task.version,
    )


def _summary(known: list[str]) -> str:
    digest = sha256("\n".join(known).encode()).hexdigest()[:16]
    return f"{len(known)} functions, digest {digest}"
