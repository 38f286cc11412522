"""The task `ffmpeg`: declared arguments become a command line, without a shell."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
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
from windlass.domain.tasks.sources import (
    Source,
    check_name,
    check_output,
    check_source,
    is_stream,
    literal_glob,
    scheme_of,
)
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput

AVAILABLE: Final = "ffmpeg:available==true"

_CODEC_OPTION: Final = re.compile(r"-(?:c|codec)(?::\S*)?|-[vas]codec")
_STREAM_FORMATS: Final = {
    "rtmp": "flv", "rtmps": "flv", "rtmpt": "flv", "rtsp": "rtsp", "rtsps": "rtsp",
    "rtp": "rtp_mpegts", "srt": "mpegts", "tcp": "mpegts", "udp": "mpegts",
}  # fmt: skip


class FfmpegArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A transcode. `output` is a file that is kept as an artifact, or a stream.

    `codec` and `audio_codec` name encoders (libx264) or codecs (h264); `options` go before the
    output; `artifacts` are globs of further files to keep; `duration` of the media is in seconds or
    text ("15m"), and is read from the input by default.
    """

    inputs: Annotated[
        list[str | Source], about('Files and streams to read: ["in.mp4", "rtsp://…"].')
    ]
    output: Annotated[str, about("The file to keep as an artifact, or a stream.")]
    codec: Annotated[str | None, about("An encoder (libx264) or a codec (h264).")] = None
    audio_codec: Annotated[str | None, about("The encoder or codec for sound.")] = None
    format: Annotated[
        str | None, about("The format of the output, if its name does not imply it.")
    ] = None
    options: Annotated[list[str], about("Options for ffmpeg, placed before the output.")] = []
    artifacts: Annotated[list[str], about("Globs of further files to keep.")] = []
    duration: Annotated[
        float | str | None,
        about("The duration of the media, such as 15m; read from the input by default."),
    ] = None


class FfmpegTask:
    """Implements `TaskKind`."""

    name: Final = "ffmpeg"

    def check(self, args: object, field: str = "args") -> TaskPlan:
        """Returns the arguments as `FfmpegArgs`, the requirements, and the duration."""
        declared = read_args(args, field)
        return TaskPlan(declared, requirements(declared), duration_ms(declared, field))


def read_args(args: object, field: str = "args") -> FfmpegArgs:
    """Checks the arguments of an ffmpeg job."""
    declared = convert(args, FfmpegArgs, field)
    if not 1 <= len(declared.inputs) <= LIST_LIMIT:
        count = len(declared.inputs)
        raise InvalidInput(f"{field}.inputs", f"a list of 1 to {LIST_LIMIT} inputs", count)
    for number, source in enumerate(declared.inputs):
        check_source(source, f"{field}.inputs[{number}]")
    check_output(declared.output, f"{field}.output")
    for name in ("codec", "audio_codec", "format"):
        value = getattr(declared, name)
        if value is not None:
            check_name(value, f"{field}.{name}")
    check_texts(declared.options, f"{field}.options")
    for number, pattern in enumerate(declared.artifacts):
        check_scratch_path(pattern, f"{field}.artifacts[{number}]")
    duration_ms(declared, field)
    return declared


def duration_ms(args: FfmpegArgs, field: str = "args") -> int | None:
    """Returns the duration of the media, if the arguments give it."""
    return read_duration(args.duration, f"{field}.duration")


def requirements(args: FfmpegArgs) -> tuple[str, ...]:
    """Returns what a worker must have: ffmpeg, each named encoder or codec, a GPU for some."""
    encoders = sorted(set(_encoders(args)))
    clauses = [AVAILABLE, *(f"ffmpeg:encoders has {name}" for name in encoders)]
    if any(name.endswith("_nvenc") for name in encoders):
        clauses.append("gpus>=1")
    return tuple(clauses)


def _encoders(args: FfmpegArgs) -> Iterator[str]:
    named = [args.codec, args.audio_codec]
    for option, value in pairwise(args.options):
        if _CODEC_OPTION.fullmatch(option):
            named.append(value)
    for name in named:
        if name is not None and name != "copy" and "," not in name and name.isprintable():
            yield name


def command_line(program: str, args: FfmpegArgs, sources: Sequence[str]) -> list[str]:
    """Returns the command; `sources` says where each input is on the worker."""
    argv = [program, "-hide_banner", "-nostdin", "-nostats", "-y", "-progress", "pipe:1"]
    for source, place in zip(args.inputs, sources, strict=True):
        argv += input_options(source, place)
    if args.codec is not None:
        argv += ["-c:v", args.codec]
    if args.audio_codec is not None:
        argv += ["-c:a", args.audio_codec]
    argv += args.options
    form = args.format or _STREAM_FORMATS.get(scheme_of(args.output) or "")
    if form is not None:
        argv += ["-f", form]
    return [*argv, args.output if is_stream(args.output) else f"./{args.output}"]


def input_options(source: str | Source, place: str) -> list[str]:
    """Returns the options that name one input on the command line."""
    if not isinstance(source, Source):
        return ["-i", place]
    form = [] if source.format is None else ["-f", source.format]
    return [*form, *source.options, "-i", place]


def kept_files(args: FfmpegArgs) -> list[str]:
    """Returns the globs of the files to keep: the output, numbered or not, and artifacts."""
    if is_stream(args.output):
        return list(args.artifacts)
    return [re.sub(r"%0?[0-9]*d", "*", literal_glob(args.output)), *args.artifacts]
