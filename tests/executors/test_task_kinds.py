"""What the tasks accept, refuse and ask for, before anything runs."""

from typing import Any

import pytest

from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import Validator
from windlass.domain.matching.clauses import parse_clause
from windlass.domain.tasks.ffmpeg import FfmpegTask, command_line, kept_files, read_args
from windlass.domain.tasks.gstreamer import GstreamerTask
from windlass.domain.tasks.kind import TaskKind
from windlass.domain.tasks.media import (
    MediaTask,
    as_ffmpeg,
    as_pipeline,
    choose_tool,
    judge,
)
from windlass.domain.tasks.media import read_args as read_media
from windlass.domain.tasks.python import PythonTask
from windlass.domain.values.errors import InvalidInput

KINDS: dict[str, TaskKind] = {
    kind.name: kind for kind in (PythonTask(), FfmpegTask(), GstreamerTask(), MediaTask())
}
GOOD: dict[str, dict[str, Any]] = {
    "python": {"function": "package.module:function", "args": [1], "kwargs": {"a": None}},
    "ffmpeg": {"inputs": ["in.mp4"], "output": "out.mp4"},
    "gstreamer": {"pipeline": ["videotestsrc", "!", "fakesink"]},
    "media": {"input": "in.mp4", "output": "out.mp4"},
}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("python", {"function": "module"}, ".function"),
    ("python", {"function": "os:system('x')"}, ".function"),
    ("python", {"function": ":f"}, ".function"),
    ("python", {"function": "a..b:f"}, ".function"),
    ("python", {"function": "a:b" * 300}, ".function"),
    ("python", {"function": "__main__:f"}, ".function"),
    ("python", {"function": None}, ".function"),
    ("python", {"args": {}}, ".args"),
    ("python", {"kwargs": []}, ".kwargs"),
    ("python", {"kwargs": {1: 2}}, ".kwargs"),
    ("python", {"pickle": "…"}, ".pickle"),
    ("ffmpeg", {"inputs": []}, ".inputs"),
    ("ffmpeg", {"inputs": "in.mp4"}, ".inputs"),
    ("ffmpeg", {"inputs": [3]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": [""]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": ["../secret"]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": ["a/../../secret"]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": ["-i"]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": ["a\0b"]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": ["file:/etc/passwd"]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": ["concat:a|b"]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": [{"url": "a", "artifact": "b"}]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": [{}]}, ".inputs[0]"),
    ("ffmpeg", {"inputs": [{"artifact": "a.mp4"}]}, ".inputs[0].job"),
    ("ffmpeg", {"inputs": [{"artifact": "../a", "job": 1}]}, ".inputs[0].artifact"),
    ("ffmpeg", {"inputs": [{"url": "a", "format": "a b"}]}, ".inputs[0].format"),
    ("ffmpeg", {"inputs": [{"url": "a", "options": ["\0"]}]}, ".inputs[0].options[0]"),
    ("ffmpeg", {"inputs": [{"url": "a", "shell": True}]}, ".inputs[0].shell"),
    ("ffmpeg", {"output": "/etc/passwd"}, ".output"),
    ("ffmpeg", {"output": "../out.mp4"}, ".output"),
    ("ffmpeg", {"output": "-y"}, ".output"),
    ("ffmpeg", {"output": ""}, ".output"),
    ("ffmpeg", {"output": "file:out.mp4"}, ".output"),
    ("ffmpeg", {"output": "pipe:1"}, ".output"),
    ("ffmpeg", {"output": 5}, ".output"),
    ("ffmpeg", {"codec": "lib x264"}, ".codec"),
    ("ffmpeg", {"codec": "x" * 200}, ".codec"),
    ("ffmpeg", {"audio_codec": "-c"}, ".audio_codec"),
    ("ffmpeg", {"options": "-an"}, ".options"),
    ("ffmpeg", {"options": [1]}, ".options[0]"),
    ("ffmpeg", {"options": ["-an", "a\0"]}, ".options[1]"),
    ("ffmpeg", {"options": ["-an"] * 2_000}, ".options"),
    ("ffmpeg", {"artifacts": ["../*"]}, ".artifacts[0]"),
    ("ffmpeg", {"duration": -1}, ".duration"),
    ("ffmpeg", {"duration": 0}, ".duration"),
    ("ffmpeg", {"duration": "soon"}, ".duration"),
    ("ffmpeg", {"duration": float("nan")}, ".duration"),
    ("ffmpeg", {"duration": 1e15}, ".duration"),
    ("ffmpeg", {"argv": ["rm"]}, ".argv"),
    ("gstreamer", {"pipeline": []}, ".pipeline"),
    ("gstreamer", {"pipeline": ["--gst-plugin-load=x"]}, ".pipeline"),
    ("gstreamer", {"pipeline": "videotestsrc ! fakesink"}, ".pipeline"),
    ("gstreamer", {"pipeline": ["videotestsrc", ""]}, ".pipeline[1]"),
    ("gstreamer", {"pipeline": ["filesrc", "location=../../x"]}, ".pipeline[1]"),
    ("gstreamer", {"pipeline": ["filesrc", "location=\0"]}, ".pipeline[1]"),
    ("gstreamer", {"duration": -3}, ".duration"),
    ("gstreamer", {"unknown": 1}, ".unknown"),
    ("media", {"input": 4}, ".input"),
    ("media", {"codec": "libnope", "output": "rtmp://host/app"}, ".codec"),
    ("media", {"audio_codec": "nope", "tool": "gstreamer"}, ".audio_codec"),
    ("media", {"tool": "vlc"}, ".tool"),
    ("media", {"video": False, "audio": False}, ".video"),
    ("media", {"output": "udp://host"}, ".output"),
    ("media", {"output": "a.xyz", "tool": "gstreamer"}, ".output"),
    ("media", {"duration": "-5s"}, ".duration"),
]  # fmt: skip


@pytest.mark.parametrize("task", KINDS)
def test_good_arguments_pass_and_others_name_what_is_missing(task: str) -> None:
    KINDS[task].check(GOOD[task], "jobs[0].args")
    needed = next(iter(GOOD[task]))
    without = {name: value for name, value in GOOD[task].items() if name != needed}
    others: list[Any] = [without, None, [], "text", 3]
    for args in others:
        with pytest.raises(InvalidInput) as caught:
            KINDS[task].check(args, "jobs[0].args")
        assert caught.value.field.startswith("jobs[0].args")
    with pytest.raises(InvalidInput) as caught:
        KINDS[task].check(without, "jobs[0].args")
    assert caught.value.field == f"jobs[0].args.{needed}"


@pytest.mark.parametrize(("task", "change", "field"), REFUSED)
def test_misfits_are_refused_by_field(task: str, change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        KINDS[task].check({**GOOD[task], **change}, "jobs[0].args")
    assert caught.value.field.startswith(f"jobs[0].args{field}")
    assert caught.value.expected


def test_an_encoder_that_is_named_is_required() -> None:
    plan = FfmpegTask().check({**GOOD["ffmpeg"], "codec": "libx264", "audio_codec": "copy"})
    assert plan.requires == ("ffmpeg:available==true", "ffmpeg:encoders has libx264")
    plan = FfmpegTask().check({**GOOD["ffmpeg"], "options": ["-c:v", "hevc_nvenc", "-an"]})
    assert plan.requires == (
        "ffmpeg:available==true",
        "ffmpeg:encoders has hevc_nvenc",
        "gpus>=1",
    )
    for clause in plan.requires:
        parse_clause(clause)


def test_the_duration_sets_the_timeout() -> None:
    validator = Validator(Config(), KINDS)

    def timeout_ms(task: str, **args: object) -> int | None:
        return validator.validate(
            JobSpec(task=task, args={**GOOD[task], **args})
        ).template.timeout_ms

    assert timeout_ms("ffmpeg", duration=600) == 1_200_000
    assert timeout_ms("ffmpeg", duration="10m") == 1_200_000
    assert timeout_ms("gstreamer", duration=600) == 630_000
    assert timeout_ms("ffmpeg") == 1_800_000


def test_the_command_line_is_words_and_never_a_line() -> None:
    args = read_args({
        "inputs": [
            {"url": "testsrc=duration=1", "format": "lavfi", "options": ["-re"]},
            "a b; rm -rf $HOME.mp4",
        ],
        "output": "out `x`.mp4",
        "codec": "libx264",
        "audio_codec": "aac",
        "options": ["-crf", "23"],
    })  # fmt: skip
    argv = command_line("ffmpeg", args, ["testsrc=duration=1", "./a b; rm -rf $HOME.mp4"])
    assert argv[argv.index("pipe:1") + 1 :] == [
        "-f", "lavfi", "-re", "-i", "testsrc=duration=1", "-i", "./a b; rm -rf $HOME.mp4",
        "-c:v", "libx264", "-c:a", "aac", "-crf", "23", "./out `x`.mp4",
    ]  # fmt: skip


def test_the_output_is_kept_whatever_its_name() -> None:
    def kept(output: str) -> list[str]:
        return kept_files(read_args({"inputs": ["a"], "output": output, "artifacts": ["x.log"]}))

    assert kept("a.mp4") == ["a.mp4", "x.log"]
    assert kept("frame-%04d.png") == ["frame-*.png", "x.log"]
    assert kept("[1]*.mp4") == ["[[]1][*].mp4", "x.log"]
    assert kept("rtmp://host/app") == ["x.log"]


@pytest.mark.parametrize(
    ("queue", "output", "present", "tool"),
    [
        ("live", "out.mp4", True, "gstreamer"),
        ("live", "out.mp4", False, "ffmpeg"),
        ("live", "rtmp://host/app", False, "gstreamer"),
        ("default", "rtmp://host/app", True, "gstreamer"),
        ("default", "RTMPS://host/app", True, "gstreamer"),
        ("batch", "srt://host:9000", True, "gstreamer"),
        ("batch", "udp://239.0.0.1:5000", False, "gstreamer"),
        ("default", "out.mp4", True, "ffmpeg"),
        ("batch", "out.mkv", False, "ffmpeg"),
    ],
)
def test_the_tool_follows_queue_output_and_worker(
    queue: str, output: str, present: bool, tool: str
) -> None:
    assert choose_tool(queue, output, present) == tool


def test_media_asks_for_what_it_will_use() -> None:
    def requires(**args: object) -> tuple[str, ...]:
        return MediaTask().check({**GOOD["media"], **args}).requires

    assert requires() == (
        "ffmpeg:available==true",
        "ffmpeg:encoders has aac",
        "ffmpeg:encoders has libx264",
    )
    assert requires(output="rtmp://host/app") == ("gstreamer:available==true",)
    for codec, audio in (("h264", "mp3"), ("hevc", "opus"), ("vp9", "vorbis"), ("vp8", "aac")):
        streamed = requires(output="rtmp://host/app", codec=codec, audio_codec=audio)
        assert streamed == ("gstreamer:available==true",)
    assert requires(output="rtmp://host/app", codec="h264_nvenc") == (
        "gstreamer:available==true",
        "gpus>=1",
    )


def test_media_says_the_same_to_both_tools() -> None:
    args = read_media({"input": "in.mp4", "output": "out.mkv", "audio": False})
    assert as_ffmpeg(args).options == ["-an"]
    words = as_pipeline(args, "file:///in.mp4").pipeline
    assert words[:3] == ["uridecodebin", "uri=file:///in.mp4", "name=in"]
    assert "audioconvert" not in words
    assert words[-5:] == ["matroskamux", "name=mux", "!", "filesink", "location=out.mkv"]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("[tcp @ 0x1] Connection to tcp://h:1 failed: Connection refused", "network"),
        ("Sending message failed: Connection terminated unexpectedly", "network"),
        ("[https @ 0x1] HTTP error 503 Service Unavailable", "network"),
        ("[https @ 0x1] HTTP error 404 Not Found", "execution"),
        ("av_interleaved_write_frame(): Broken pipe", "network"),
        ("[vost#0:0 @ 0x1] Unknown encoder 'x'\nConversion failed!", "configuration"),
        ("av_interleaved_write_frame(): No space left on device\nConversion failed!", "resource"),
        ("[h264 @ 0x1] error while decoding MB 3 3\nConversion failed!", "execution"),
        ("", "execution"),
    ],
)
def test_what_tools_say_has_a_class(text: str, failure: str) -> None:
    assert judge(text).failure == failure
