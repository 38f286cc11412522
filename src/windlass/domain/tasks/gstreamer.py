"""The task `gstreamer`: a pipeline for gst-launch, word by word."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from windlass.domain.tasks.kind import (
    LIST_LIMIT,
    TaskPlan,
    about,
    check_scratch_path,
    check_texts,
    read_duration,
)
from windlass.domain.tasks.sources import scheme_of
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput

AVAILABLE: Final = "gstreamer:available==true"
_READS: Final = {  # elements that read one source to its end, and the property that names it
    "filesrc": "location", "uridecodebin": "uri", "uridecodebin3": "uri", "urisourcebin": "uri",
    "playbin": "uri", "playbin3": "uri", "souphttpsrc": "location",
}  # fmt: skip
_PLACES: Final = ("location=", "uri=", "playlist-location=", "target-location=")


class GstreamerArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pipeline. `artifacts` are globs of files that are kept; `duration` of the media is
    in seconds or text ("15m")."""

    pipeline: Annotated[list[str], about("The words of the pipeline, as gst-launch takes them.")]
    artifacts: Annotated[list[str], about("Globs of files to keep.")] = []
    duration: Annotated[float | str | None, about("The duration of the media, such as 15m.")] = None


class GstreamerTask:
    """Implements `TaskKind`."""

    name: Final = "gstreamer"

    def check(self, args: object, field: str = "args") -> TaskPlan:
        """Returns the arguments as `GstreamerArgs`, the requirements, and the duration."""
        declared = read_args(args, field)
        duration = read_duration(declared.duration, f"{field}.duration")
        return TaskPlan(declared, (AVAILABLE,), duration)


def read_args(args: object, field: str = "args") -> GstreamerArgs:
    """Checks the arguments of a gstreamer job."""
    declared = convert(args, GstreamerArgs, field)
    words = declared.pipeline
    if not words or words[0].startswith("-"):
        expected = f"a list of 1 to {LIST_LIMIT} words that begins with an element"
        raise InvalidInput(f"{field}.pipeline", expected, words[:1])
    check_texts(words, f"{field}.pipeline")
    for number, word in enumerate(words):
        _check_word(word, f"{field}.pipeline[{number}]")
    for number, pattern in enumerate(declared.artifacts):
        check_scratch_path(pattern, f"{field}.artifacts[{number}]")
    read_duration(declared.duration, f"{field}.duration")
    return declared


def _check_word(word: str, field: str) -> None:
    if not word:
        raise InvalidInput(field, "a word of a pipeline", "nothing")
    name, _, value = word.partition("=")
    place = value.strip("\"'")
    if f"{name}=" in _PLACES and scheme_of(place) in (None, "file"):
        parts = place.split("/")
        if ".." in parts:
            raise InvalidInput(field, "a path without ..", word)


def command_line(program: str, args: GstreamerArgs) -> list[str]:
    """Returns the command. A stopped job leaves no artifact, so `-e` is not needed."""
    return [program, "--no-position", *args.pipeline]


def sources_of(pipeline: Sequence[str]) -> list[str]:
    """Returns what a pipeline reads to its end; empty if it also has other sources.

    Those (test patterns, cameras, looped files) never end, or decide on their own when to.
    """
    found: list[str] = []
    reads: str | None = None  # the property that names what the current element reads
    for word in pipeline:
        name, equals, value = word.partition("=")
        if equals and name == reads:
            found.append(value.strip("\"'"))
        elif not equals:
            if name.endswith("src") and name not in _READS:
                return []
            reads = _READS.get(name)
    return found
