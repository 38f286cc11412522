"""The task `media`: one input, one output, converted by the better of two tools.

Their failures are classified by their messages.
"""

import re
from typing import Annotated, Final, Literal, NamedTuple

import msgspec

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.tasks import ffmpeg, gstreamer
from windlass.domain.tasks.ffmpeg import FfmpegArgs
from windlass.domain.tasks.gstreamer import GstreamerArgs
from windlass.domain.tasks.kind import TaskPlan, about, check_texts, read_duration
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

Tool = Literal["ffmpeg", "gstreamer"]

LIVE: Final = "live"

# The GStreamer elements for ffmpeg's encoders and for codecs, with settings for streams.
_X264: Final = ("x264enc", "tune=zerolatency", "!", "h264parse")
_X265: Final = ("x265enc", "tune=zerolatency", "!", "h265parse")
_VP8: Final = ("vp8enc", "deadline=1")
_VP9: Final = ("vp9enc", "deadline=1")
_MP3: Final = ("lamemp3enc", "!", "mpegaudioparse")
_VIDEO: Final = {
    "h264": _X264,
    "libx264": _X264,
    "hevc": _X265,
    "libx265": _X265,
    "libopenh264": ("openh264enc", "!", "h264parse"),
    "vp8": _VP8,
    "libvpx": _VP8,
    "vp9": _VP9,
    "libvpx-vp9": _VP9,
    "h264_nvenc": ("nvh264enc", "!", "h264parse"),
    "hevc_nvenc": ("nvh265enc", "!", "h265parse"),
}
_AUDIO: Final = {
    "aac": ("voaacenc", "!", "aacparse"),
    "mp3": _MP3,
    "libmp3lame": _MP3,
    "opus": ("opusenc",),
    "libopus": ("opusenc",),
    "vorbis": ("vorbisenc",),
    "libvorbis": ("vorbisenc",),
}
_COLOURS: Final = "video/x-raw,format=I420"  # what every player supports
_MUXERS: Final = {
    "mp4": "mp4mux", "m4v": "mp4mux", "mov": "qtmux", "mkv": "matroskamux", "webm": "webmmux",
    "ts": "mpegtsmux", "flv": "flvmux", "ogg": "oggmux",
}  # fmt: skip


class MediaArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conversion. `output` is a file that is kept as an artifact, or a stream.

    `codec` and `audio_codec` name ffmpeg encoders or codecs. `video` and `audio` say which of the
    two the output has. `tool` overrides the automatic choice. `options` are for ffmpeg only.
    """

    input: Annotated[str | Source, about("A file or a stream.")]
    output: Annotated[str, about("The file to keep as an artifact, or a stream.")]
    codec: Annotated[str, about("An encoder (libx264) or a codec (h264).")] = "libx264"
    audio_codec: Annotated[str, about("The encoder or codec for sound.")] = "aac"
    video: Annotated[bool, about("The output has pictures.")] = True
    audio: Annotated[bool, about("The output has sound.")] = True
    tool: Annotated[
        Literal["auto", "ffmpeg", "gstreamer"],
        about("The tool that converts; auto: whichever a worker has."),
    ] = "auto"
    options: Annotated[list[str], about("Options, for ffmpeg only.")] = []
    duration: Annotated[float | str | None, about("The duration of the media, such as 15m.")] = None


class MediaTask:
    """Implements `TaskKind`."""

    name: Final = "media"

    def check(self, args: object, field: str = "args") -> TaskPlan:
        """Returns the arguments as `MediaArgs`, the requirements, and the duration."""
        declared = read_args(args, field)
        duration = read_duration(declared.duration, f"{field}.duration")
        return TaskPlan(declared, requirements(declared), duration)


def read_args(args: object, field: str = "args") -> MediaArgs:
    """Checks the arguments of a media job."""
    declared = convert(args, MediaArgs, field)
    check_source(declared.input, f"{field}.input")
    check_output(declared.output, f"{field}.output")
    check_name(declared.codec, f"{field}.codec")
    check_name(declared.audio_codec, f"{field}.audio_codec")
    check_texts(declared.options, f"{field}.options")
    if not declared.video and not declared.audio:
        raise InvalidInput(f"{field}.video", "true where audio is false", False)
    if _needs_gstreamer(declared):
        _check_names(declared, field)
    read_duration(declared.duration, f"{field}.duration")
    return declared


def choose_tool(queue: str, output: str, gstreamer_present: bool) -> Tool:
    """Chooses GStreamer for streams and, if available, for live work; else ffmpeg."""
    if is_stream(output) or (queue == LIVE and gstreamer_present):
        return "gstreamer"
    return "ffmpeg"


def timed_as(task: str, args: object) -> str:
    """Returns the task whose timeout applies: the tool's for a `media` job, ffmpeg if both fit."""
    if task != MediaTask.name:
        return task
    return "gstreamer" if _needs_gstreamer(read_args(args)) else "ffmpeg"


def requirements(args: MediaArgs) -> tuple[str, ...]:
    """Returns what a worker must have. A live file needs ffmpeg; GStreamer is optional."""
    if _needs_gstreamer(args):
        nvenc = args.codec.endswith("_nvenc") and args.video
        return (gstreamer.AVAILABLE, "gpus>=1") if nvenc else (gstreamer.AVAILABLE,)
    return ffmpeg.requirements(as_ffmpeg(args))


def _needs_gstreamer(args: MediaArgs) -> bool:
    return args.tool == "gstreamer" or (args.tool == "auto" and is_stream(args.output))


def _check_names(args: MediaArgs, field: str) -> None:
    if args.video and args.codec not in _VIDEO:
        raise InvalidInput(f"{field}.codec", f"one of {', '.join(_VIDEO)}", args.codec)
    if args.audio and args.audio_codec not in _AUDIO:
        expected = f"one of {', '.join(_AUDIO)}"
        raise InvalidInput(f"{field}.audio_codec", expected, args.audio_codec)
    _sink(args.output, f"{field}.output")


def has_pipeline(args: MediaArgs) -> bool:
    """Returns True if these arguments can be expressed as a pipeline."""
    if isinstance(args.input, Source) and (args.input.format or args.input.options):
        return False
    try:
        _check_names(args, "args")
    except InvalidInput:
        return False
    return not args.options


def as_ffmpeg(args: MediaArgs) -> FfmpegArgs:
    """Returns the same work for ffmpeg."""
    return FfmpegArgs(
        inputs=[args.input],
        output=args.output,
        codec=args.codec if args.video else None,
        audio_codec=args.audio_codec if args.audio else None,
        options=[*(() if args.video else ("-vn",)), *(() if args.audio else ("-an",)),
                 *args.options],
        duration=args.duration,
    )  # fmt: skip


def as_pipeline(args: MediaArgs, uri: str) -> GstreamerArgs:
    """Returns the same work for GStreamer, which reads from `uri`."""
    words = ["uridecodebin", f"uri={uri}", "name=in"]
    if args.video:
        words += ["in.", "!", "queue", "!", "videoconvert", "!", _COLOURS, "!",
                  *_VIDEO[args.codec], "!", "mux."]  # fmt: skip
    if args.audio:
        words += ["in.", "!", "queue", "!", "audioconvert", "!", "audioresample", "!",
                  *_AUDIO[args.audio_codec], "!", "mux."]  # fmt: skip
    words += _sink(args.output, "args.output")
    kept = [] if is_stream(args.output) else [literal_glob(args.output)]
    return GstreamerArgs(pipeline=words, artifacts=kept, duration=args.duration)


def _sink(output: str, field: str) -> list[str]:
    """Returns the elements from the muxer named `mux` to the output."""
    scheme = scheme_of(output)
    if scheme in ("rtmp", "rtmps"):
        return ["flvmux", "name=mux", "streamable=true", "!", "rtmp2sink", f"location={output}"]
    if scheme == "srt":
        return ["mpegtsmux", "name=mux", "!", "srtsink", f"uri={output}"]
    if scheme in ("udp", "tcp"):
        host, colon, port = output.partition("://")[2].partition("/")[0].rpartition(":")
        if not colon or not port.isdecimal():
            raise InvalidInput(field, f"{scheme}://HOST:PORT", output)
        sink = "udpsink" if scheme == "udp" else "tcpclientsink"
        return ["mpegtsmux", "name=mux", "!", sink, f"host={host.strip('[]')}", f"port={port}"]
    if scheme in ("http", "https"):
        return ["mpegtsmux", "name=mux", "!", "souphttpclientsink", f"location={output}"]
    muxer = _MUXERS.get(output.rpartition(".")[2].lower()) if scheme is None else None
    if muxer is None:
        known = f"a stream of http, rtmp, srt, tcp or udp, or a file {', '.join(_MUXERS)}"
        raise InvalidInput(field, f"for GStreamer {known}", output)
    return [muxer, "name=mux", "!", "filesink", f"location={output}"]


MESSAGE_LIMIT: Final = 500


class Verdict(NamedTuple):
    """A failure's class, and the line that shows it."""

    failure: FailureClass
    message: str | None


# The first match counts: a full disk also ends in "Conversion failed", a lost connection also in
# "Input/output error". Without a match, the work itself failed.
_PATTERNS: Final = (
    (
        FailureClass.RESOURCE,
        (
            r"no space left on device|cannot allocate memory|out of memory|disk quota exceeded"
            r"|too many open files|no capable devices found"
        ),
    ),
    (
        FailureClass.NETWORK,
        (
            r"connection refused|connection reset|connection timed out|connection closed"
            r"|connection terminated"
            r"|network is unreachable|network is down|no route to host|host is down"
            r"|failed to resolve hostname|temporary failure|name or service not known"
            r"|could not resolve|error resolving|no such host|socket connection error"
            r"|operation timed out|timed out|broken pipe|could not connect|failed to connect"
            r"|cannot connect|server returned 5|http error 5|http error 429|too many requests"
            r"|service unavailable|bad gateway|gateway timeout"
            r"|error in the pull function|i/o error on socket"
            r"|(?:tcp|udp|rtmp|rtsp|srt|http|https)://\S*: input/output error"
        ),
    ),
    (
        FailureClass.CONFIGURATION,
        (
            r"unknown encoder|unknown decoder|encoder not found|decoder not found"
            r"|unrecognized option|option not found|error splitting the argument list"
            r"|error parsing option|unable to (?:parse|choose)|no such filter|filter not found"
            r"|unknown (?:input|output) format|requested output format|muxer not found"
            r"|protocol not found|undefined constant|matches no streams|trailing option"
            r"|at least one output file|invalid encoder type|missing argument"
            r"|no element \"|no property \"|could not link|syntax error|could not set property"
            r"|erroneous pipeline|could not be constructed|empty pipeline"
        ),
    ),
)
_TABLE: Final = tuple(
    (failure, re.compile(pattern, re.IGNORECASE)) for failure, pattern in _PATTERNS
)
# ffmpeg reports only the end of the file if a server closes the connection without an answer.
_CUT_OFF: Final = re.compile(
    r"^error opening input file ([a-z]+://\S+?)\.?\s*\nerror opening input files: end of file",
    re.IGNORECASE | re.MULTILINE,
)
_TAG: Final = re.compile(r"^\[[^\]]* @ 0x[0-9a-f]+\]\s*")
_DEBUG: Final = re.compile(
    r"^\d+:\d\d:\d\d\.\d+\s+\d+\s+0x[0-9a-f]+\s+\w+\s+\S+\s+\S+?:\d+:[^:]*:\s*"
)
_OBJECT: Final = re.compile(r"^<[^>]*>\s*")


def judge(text: str) -> Verdict:
    """Returns the class of a failure, from what the tool wrote."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for failure, pattern in _TABLE:
        for line in lines:
            if pattern.search(line):
                return Verdict(failure, _plain(line))
    cut_off = _CUT_OFF.search(text)
    if cut_off is not None:
        return Verdict(FailureClass.NETWORK, _plain(f"{cut_off[1]}: End of file"))
    return Verdict(FailureClass.EXECUTION, _telling(lines))


def _telling(lines: list[str]) -> str | None:
    """Returns the line that best explains the failure: GStreamer's first, ffmpeg's last."""
    for line in lines:
        if re.search(r"> error: ", line):
            return _plain(line)
    for line in reversed(lines):
        if re.search(r"\berror\b|\bfailed\b|invalid", line, re.IGNORECASE):
            return _plain(line)
    return None


def _plain(line: str) -> str:
    """Returns a line without memory addresses and times."""
    line = _OBJECT.sub("", _DEBUG.sub("", _TAG.sub("", line)))
    return line[:MESSAGE_LIMIT]
