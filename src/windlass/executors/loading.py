"""Chooses what a worker runs and a server knows: the built-in tasks, and those of other packages.

A package adds tasks as a plug-in: `windlass.plugins.Plugin.tasks` says what it may name. Servers
check the arguments of such jobs with the executor's `kind`, or the signature of a marked function.
"""

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import structlog

from windlass.domain.tasks.built_in import KINDS
from windlass.domain.tasks.kind import TaskKind
from windlass.plugins import Named, PluginFailed, added
from windlass.ports.executor import Executor
from windlass.tasks.task import PYTHON, Task

log = structlog.get_logger()


def load_kinds(imports: Iterable[str] = ()) -> dict[str, TaskKind]:
    """Returns what servers know about tasks, by name: built-in ones and those of other packages.

    The named functions of the modules `imports` are included.
    """
    from windlass.executors.python.known import import_modules, named_kinds

    import_modules(imports)
    kinds = {kind.name: kind for kind in KINDS}
    for task in added("tasks"):
        kind = getattr(_load(task), "kind", None)
        if kind is not None:
            kinds[task.name] = kind
    return {**kinds, **named_kinds(kinds)}


def load_executors(
    tasks: Iterable[str] | None = None,
    imports: Iterable[str] = (),
    allowed: Iterable[str] = (),
    apps: Iterable[str] = (),
) -> dict[str, Executor]:
    """Returns executors by task: those named, else all of them.

    An executor of another package that cannot be loaded is left out and logged. `imports` are
    modules whose named functions run as well, if `python` does, `apps` packages with all
    submodules; `allowed` are patterns of modules whose functions jobs may name.
    """
    from windlass.executors.python.known import import_modules, modules_of

    wanted = None if tasks is None else set(tasks)
    modules = tuple(imports)
    import_modules(modules)
    modules = tuple(dict.fromkeys((*modules, *modules_of(apps))))
    executors: dict[str, Executor] = {}
    for task in BUILT_IN:
        if wanted is None or task in wanted:
            options = {"preload": modules, "allowed": tuple(allowed)} if task == PYTHON else {}
            executors[task] = _make(task, **options)
    for one in added("tasks"):
        brought = _load(one) if wanted is None or one.name in wanted else None
        marks = isinstance(brought, ModuleType | Task)
        if brought is not None and not marks:
            executors[one.name] = brought()
    add_named(executors)
    return executors


def add_named(executors: dict[str, Executor]) -> None:
    """Adds the named functions that this process has imported, if it has `python`."""
    from windlass.executors.python.known import Calls, NamedFunction, named_executors

    python = executors.get(PYTHON)
    if isinstance(python, Calls):
        others = [task for task, e in executors.items() if not isinstance(e, NamedFunction)]
        executors.update(named_executors(python, others))


def _load(task: Named) -> Any:
    """Returns what a plug-in names; None if it cannot be loaded."""
    try:
        return task.load()
    except PluginFailed:
        log.exception("task_not_loaded", task=task.name, found_in=task.path)
        return None


# Only workers that run its task import it.
BUILT_IN: Final = {
    "ffmpeg": "windlass.executors.media:FfmpegExecutor",
    "gstreamer": "windlass.executors.media:GstreamerExecutor",
    "media": "windlass.executors.media:MediaExecutor",
    "python": "windlass.executors.python.executor:PythonExecutor",
    "shell": "windlass.executors.shell:ShellExecutor",
}


def _make(task: str, **options: Any) -> Executor:
    """Returns the executor of a built-in task."""
    module, _, name = BUILT_IN[task].partition(":")
    made: Executor = getattr(import_module(module), name)(**options)
    return made
