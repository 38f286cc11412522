"""How workers run jobs: the built-in tasks, and those that other packages bring.

A package adds a task through the entry point group `windlass.tasks`: a class or function
that makes an `Executor` (`windlass/ports/executor.py`). If it has an attribute `kind`, a
`TaskKind`, servers check the arguments of such jobs with it at submit.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import structlog

from windlass.domain.tasks.ffmpeg import FfmpegTask
from windlass.domain.tasks.gstreamer import GstreamerTask
from windlass.domain.tasks.media import MediaTask
from windlass.domain.tasks.python import PythonTask
from windlass.domain.tasks.shell import ShellTask
from windlass.ports.executor import Executor
from windlass.ports.tasks import TaskKind

GROUP: Final = "windlass.tasks"

# Where the built-in executors are; each is imported only by workers that run its task.
BUILT_IN: Final = {
    "ffmpeg": ("windlass.executors.ffmpeg", "FfmpegExecutor"),
    "gstreamer": ("windlass.executors.gstreamer", "GstreamerExecutor"),
    "media": ("windlass.executors.media", "MediaExecutor"),
    "python": ("windlass.executors.python", "PythonExecutor"),
    "shell": ("windlass.executors.shell", "ShellExecutor"),
}
KINDS: Final[tuple[TaskKind, ...]] = (
    FfmpegTask(),
    GstreamerTask(),
    MediaTask(),
    PythonTask(),
    ShellTask(),
)

log = structlog.get_logger()


def load_kinds() -> dict[str, TaskKind]:
    """What servers know of tasks, by name: the built-in ones and those of other packages."""
    kinds = {kind.name: kind for kind in KINDS}
    for point in entry_points(group=GROUP):
        kind = getattr(_load(point), "kind", None)
        if kind is not None:
            kinds[point.name] = kind
    return kinds


def load_executors(tasks: Iterable[str] | None = None) -> dict[str, Executor]:
    """Executors by task: those named, else all there are.

    One from another package that cannot be loaded is left out, and the log says so.
    """
    wanted = None if tasks is None else set(tasks)
    executors: dict[str, Executor] = {}
    for task, (module, name) in BUILT_IN.items():
        if wanted is None or task in wanted:
            make: Callable[[], Executor] = getattr(import_module(module), name)
            executors[task] = make()
    for point in entry_points(group=GROUP):
        if (wanted is None or point.name in wanted) and (brought := _load(point)) is not None:
            executors[point.name] = brought()
    return executors


def _load(point: EntryPoint) -> Any:
    """What an entry point names; None if it cannot be loaded."""
    try:
        return point.load()
    except Exception:
        log.exception("task_not_loaded", task=point.name, found_in=point.value)
        return None
