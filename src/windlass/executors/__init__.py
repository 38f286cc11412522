"""How workers run jobs: the built-in tasks, and those that other packages bring.

A package adds a task through the entry point group `windlass.tasks`: a class or function
that makes an `Executor` (`windlass/ports/executor.py`). If it has an attribute `kind`, a
`TaskKind`, servers check the arguments of such jobs with it at submit.
"""

from collections.abc import Callable, Iterable
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
    for task, make in BUILT_IN.items():
        if wanted is None or task in wanted:
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


# Each is imported only by workers that run its task.


def _ffmpeg() -> Executor:
    from windlass.executors.ffmpeg import FfmpegExecutor

    return FfmpegExecutor()


def _gstreamer() -> Executor:
    from windlass.executors.gstreamer import GstreamerExecutor

    return GstreamerExecutor()


def _media() -> Executor:
    from windlass.executors.media import MediaExecutor

    return MediaExecutor()


def _python() -> Executor:
    from windlass.executors.python import PythonExecutor

    return PythonExecutor()


def _shell() -> Executor:
    from windlass.executors.shell import ShellExecutor

    return ShellExecutor()


BUILT_IN: Final[dict[str, Callable[[], Executor]]] = {
    "ffmpeg": _ffmpeg,
    "gstreamer": _gstreamer,
    "media": _media,
    "python": _python,
    "shell": _shell,
}
