"""The tasks that come with Windlass."""

from typing import Final

from windlass.domain.tasks.ffmpeg import FfmpegTask
from windlass.domain.tasks.gstreamer import GstreamerTask
from windlass.domain.tasks.kind import TaskKind
from windlass.domain.tasks.media import MediaTask
from windlass.domain.tasks.python import PythonTask
from windlass.domain.tasks.shell import ShellTask

MEDIA_TASKS: Final = frozenset(kind.name for kind in (FfmpegTask(), GstreamerTask(), MediaTask()))

KINDS: Final[tuple[TaskKind, ...]] = (
    FfmpegTask(),
    GstreamerTask(),
    MediaTask(),
    PythonTask(),
    ShellTask(),
)
