"""Functions that are tasks of their own names, run by the executor of Python functions."""

import importlib
import os
import sys
from collections.abc import Iterable
from pkgutil import iter_modules
from typing import Any, Protocol, runtime_checkable

from windlass.domain.tasks.python import FunctionTask, read_call
from windlass.domain.values.errors import InvalidInput
from windlass.messages.files import StackThread
from windlass.ports.executor import JobContext, Result
from windlass.tasks.task import Task, named_tasks


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
