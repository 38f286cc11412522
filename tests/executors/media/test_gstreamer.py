"""gstreamer jobs with the real program, and the automatic choice of the task media."""

import asyncio
import os
import shutil
import socket
import struct
from collections.abc import Iterator

import pytest

from tests.executors.conftest import OnBench
from tests.support.debian import missing_reason
from tests.support.job_context import BenchContext, Workbench, is_alive
from windlass.domain.tasks.gstreamer import sources_of
from windlass.executors.media import FfmpegExecutor, GstreamerExecutor, MediaExecutor, find_duration
from windlass.ports.executor import Result

REASON = missing_reason("gst-launch-1.0")
NO_DISCOVERER = missing_reason("gst-discoverer-1.0")

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))

TEST_CLIP = "videotestsrc num-buffers=60 ! video/x-raw,format=I420,width=160,height=120"


async def launch(
    bench: Workbench, pipeline: str, artifacts: tuple[str, ...] = ()
) -> tuple[Result, BenchContext]:
    context = bench.context({"pipeline": pipeline.split(), "artifacts": list(artifacts)})
    return await GstreamerExecutor().run(context), context


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_a_pipeline_runs_and_its_file_is_kept(on_bench: OnBench) -> None:
    async def body(bench: Workbench) -> None:
        pipeline = f"{TEST_CLIP} ! x264enc ! mp4mux ! filesink location=a.mp4"
        result, context = await launch(bench, pipeline, ("*.mp4",))
        assert (result.outcome, result.exit_code) == ("completed", 0)
        assert context.uploaded == ["a.mp4"]
        assert context.values == [1.0]
        assert b"Got EOS" in context.written

    on_bench(body)


def test_the_element_progressreport_becomes_progress(on_bench: OnBench) -> None:
    async def body(bench: Workbench) -> None:
        await launch(bench, f"{TEST_CLIP} ! x264enc ! mp4mux ! filesink location=a.mp4")
        source = bench.folder / "job-1" / "a.mp4"
        pipeline = (
            f"filesrc location={source} ! qtdemux ! h264parse ! progressreport update-freq=1"
            " ! openh264dec ! fakesink sync=true"
        )
        result, context = await launch(bench, pipeline)
        assert result.outcome == "completed"
        assert context.values[-1] == 1.0
        assert context.values == sorted(set(context.values))
        assert len(context.values) > 1

    on_bench(body)


@pytest.mark.parametrize(
    ("pipeline", "failure", "words"),
    [
        ("videotestsrc ! nosuchelement ! fakesink", "configuration", "nosuchelement"),
        ("videotestsrc nosuchprop=1 ! fakesink", "configuration", "nosuchprop"),
        ("videotestsrc ! audioconvert ! fakesink", "configuration", "could not link"),
        ("videotestsrc !", "configuration", "syntax error"),
        ("filesrc location=missing ! fakesink", "execution", "No such file"),
        ("filesrc location=/etc/hostname ! qtdemux ! fakesink", "execution", "no playable"),
    ],
)
def test_failures_that_no_retry_would_cure(
    on_bench: OnBench, pipeline: str, failure: str, words: str
) -> None:
    async def body(bench: Workbench) -> None:
        result, context = await launch(bench, pipeline, ("*.mp4",))
        assert (result.outcome, result.failure) == ("failed", failure)
        assert words in str(result.message)
        assert context.uploaded == []

    on_bench(body)


@pytest.mark.parametrize(
    "pipeline",
    [
        "tcpclientsrc host=127.0.0.1 port={port} ! fakesink",
        "souphttpsrc location=http://127.0.0.1:{port}/x ! fakesink",
        "videotestsrc ! x264enc ! flvmux ! rtmp2sink location=rtmp://127.0.0.1:{port}/live/x",
    ],
    ids=["tcp", "http", "rtmp"],
)
def test_an_unreachable_peer_is_a_network_failure(
    on_bench: OnBench, closed_port: int, pipeline: str
) -> None:
    async def body(bench: Workbench) -> None:
        result, _ = await launch(bench, pipeline.format(port=closed_port))
        assert (result.outcome, result.failure) == ("failed", "network")

    on_bench(body)


async def clip(bench: Workbench) -> str:
    """A clip of two seconds."""
    made, context = await launch(
        bench, f"{TEST_CLIP} ! x264enc ! mp4mux ! filesink location=a.mp4", ("a.mp4",)
    )
    assert made.outcome == "completed"
    assert context.durations == []  # test pictures have no length but their own
    return str(bench.folder / "job-1" / "a.mp4")


def test_what_a_pipeline_reads_is_measured_by_ffmpeg(
    on_bench: OnBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.executors.media.DISCOVERER", "no-such-program")

    async def body(bench: Workbench) -> None:
        source = await clip(bench)
        for words in (
            f"filesrc location={source} ! decodebin",
            f"uridecodebin uri=file://{source}",
        ):
            result, context = await launch(bench, f"{words} ! fakesink")
            assert result.outcome == "completed"
            assert context.durations == [pytest.approx(2_000, abs=50)]

    on_bench(body)


@pytest.mark.skipif(NO_DISCOVERER is not None, reason=str(NO_DISCOVERER))
def test_what_a_pipeline_reads_is_measured_by_gstreamer(
    on_bench: OnBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.executors.media.find_ffmpeg", lambda: None)

    async def body(bench: Workbench) -> None:
        source = await clip(bench)
        result, context = await launch(bench, f"filesrc location={source} ! decodebin ! fakesink")
        assert result.outcome == "completed"
        assert context.durations == [pytest.approx(2_000, abs=50)]

    on_bench(body)


@pytest.mark.parametrize(
    ("pipeline", "found"),
    [
        ("filesrc location=a.mp4 ! decodebin ! fakesink", ["a.mp4"]),
        ("uridecodebin uri=http://h/a name=in in. ! queue ! fakesink", ["http://h/a"]),
        ("filesrc location='a' ! x filesrc location=c ! y", ["a", "c"]),
        ("videotestsrc ! fakesink", []),
        ("filesrc location=a ! mux. audiotestsrc ! mux.", []),
        ("multifilesrc location=a loop=true ! fakesink", []),
        ("decodebin ! filesink location=out.mp4", []),
    ],
)
def test_what_a_pipeline_reads_is_found_in_its_words(pipeline: str, found: list[str]) -> None:
    assert sources_of(pipeline.split()) == found


def test_a_duration_that_nobody_knows_is_none() -> None:
    assert find_duration("Properties:\n  Duration: 99:99:99.999999999\n") is None
    assert find_duration("Properties:\n  Duration: 0:01:02.500000000\n") == 62_500


def test_a_cancel_ends_the_pipeline(on_bench: OnBench) -> None:
    async def body(bench: Workbench) -> None:
        context = bench.context({"pipeline": ["videotestsrc", "is-live=true", "!", "fakesink"]})
        running = asyncio.create_task(GstreamerExecutor().run(context))
        await context.until_written(b"PLAYING")
        pid = context.processes[0].pid
        context.stop()
        assert (await running).outcome == "canceled"
        assert not is_alive(pid)

    on_bench(body)


async def make_clip(bench: Workbench) -> str:
    """A clip with picture and sound; where it is."""
    context = bench.context({
        "inputs": [
            {"url": "testsrc=duration=2:size=160x120", "format": "lavfi"},
            {"url": "sine=duration=2", "format": "lavfi"},
        ],
        "output": "clip.mp4",
        "codec": "libx264",
        "audio_codec": "aac",
        "options": ["-pix_fmt", "yuv420p"],
    })  # fmt: skip
    assert (await FfmpegExecutor().run(context)).outcome == "completed"
    return str(context.scratch / "clip.mp4")


@pytest.mark.parametrize(
    ("queue", "tool"), [("default", b"with ffmpeg"), ("live", b"with gstreamer")]
)
def test_media_jobs_go_to_the_tool_that_suits_them(
    on_bench: OnBench, queue: str, tool: bytes
) -> None:
    async def body(bench: Workbench) -> None:
        source = await make_clip(bench)
        context = bench.context({"input": source, "output": "out.mkv"}, queue=queue)
        result = await MediaExecutor().run(context)
        assert result.outcome == "completed", context.written.decode()
        assert tool in context.written
        assert len(context.durations) == (queue == "default")  # live work has no end to know
        assert context.uploaded == ["out.mkv"]
        assert (context.scratch / "out.mkv").stat().st_size > 1_000

    on_bench(body)


def test_a_media_job_streams_to_a_listener(on_bench: OnBench) -> None:
    async def body(bench: Workbench) -> None:
        received = bytearray()
        closed = asyncio.Event()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65_536):
                received.extend(data)
            writer.close()
            closed.set()

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        source = await make_clip(bench)
        context = bench.context({"input": source, "output": f"tcp://127.0.0.1:{port}"})
        result = await MediaExecutor().run(context)
        assert result.outcome == "completed", context.written.decode()
        await closed.wait()
        server.close()
        await server.wait_closed()
        assert b"with gstreamer" in context.written
        assert 1_900 < context.durations[0] < 2_200
        assert struct.unpack_from("B", received)[0] == 0x47  # an MPEG transport stream

    on_bench(body)


def test_a_worker_without_gstreamer_says_what_to_install(
    on_bench: OnBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(bench: Workbench) -> None:
        monkeypatch.setenv("PATH", os.path.dirname(str(shutil.which("true"))) + "/nowhere")
        result, _ = await launch(bench, "videotestsrc ! fakesink")
        assert (result.outcome, result.failure) == ("failed", "configuration")
        assert "install gstreamer1.0-tools" in str(result.message)

    on_bench(body)
