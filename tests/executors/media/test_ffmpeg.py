"""ffmpeg jobs with the real program, on clips it generates itself."""

import asyncio
import itertools
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.executors.conftest import OnBench
from tests.support.job_context import BenchContext, Workbench, is_alive
from windlass.domain.values.errors import InvalidInput
from windlass.executors.media import FfmpegExecutor, find_ffmpeg
from windlass.ports.executor import Result


def clip(seconds: int, size: str = "160x120") -> dict[str, Any]:
    return {"url": f"testsrc=duration={seconds}:size={size}:rate=25", "format": "lavfi"}


async def transcode(bench: Workbench, **args: object) -> tuple[Result, BenchContext]:
    context = bench.context(args)
    return await FfmpegExecutor().run(context), context


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_there_is_an_ffmpeg() -> None:
    program = find_ffmpeg()
    assert program is not None
    assert os.access(program, os.X_OK)


def test_a_clip_is_transcoded_and_kept(on_bench: OnBench) -> None:
    async def body(bench: Workbench) -> None:
        result, made = await transcode(
            bench, inputs=[clip(3)], output="out/clip.mp4", codec="h264", duration=3
        )
        assert (result.outcome, result.exit_code) == ("completed", 0)
        assert made.uploaded == ["out/clip.mp4"]
        assert made.values[-1] == 1.0
        assert made.values == sorted(set(made.values))
        assert b"Output #0, mp4" in made.written
        assert b"progress=" not in made.written

    on_bench(body)


def test_the_duration_is_found_in_the_input(on_bench: OnBench, tmp_path: Path) -> None:
    async def body(bench: Workbench) -> None:
        _, first = await transcode(
            bench, inputs=[clip(20, "320x240")], output="a.mkv", codec="mpeg4"
        )
        assert any(isinstance(value, dict) for value in first.values)  # nobody knew how long
        source = str(first.scratch / "a.mkv")
        result, again = await transcode(
            bench,
            inputs=[source],
            output="b.mp4",
            codec="libx264",
            options=["-preset", "slow", "-threads", "1"],
        )
        assert result.outcome == "completed"
        assert again.durations == [20_000]
        assert first.durations == []
        assert b"At least one output file" not in again.written  # of the program that looked
        shares = again.values
        assert all(isinstance(value, float) for value in shares)
        assert all(one < other for one, other in itertools.pairwise(shares))
        assert (shares[-1], min(shares) >= 0) == (1.0, True)

    on_bench(body)


@pytest.mark.parametrize(
    ("change", "failure", "words"),
    [
        ({"codec": "libnope"}, "configuration", "Unknown encoder 'libnope'"),
        ({"options": ["-nosuchoption", "1"]}, "configuration", "nosuchoption"),
        ({"options": ["-vf", "nosuchfilter"]}, "configuration", "nosuchfilter"),
        ({"output": "a.unknown"}, "configuration", "Unable to choose an output format"),
        ({"inputs": ["missing.mp4"]}, "execution", "No such file or directory"),
        ({"inputs": ["/etc/hostname"]}, "execution", "Invalid data found"),
    ],
)
def test_failures_that_no_retry_would_cure(
    on_bench: OnBench, change: dict[str, Any], failure: str, words: str
) -> None:
    async def body(bench: Workbench) -> None:
        args = {"inputs": [clip(1)], "output": "a.mp4", "codec": "mpeg4", **change}
        result, context = await transcode(bench, **args)
        assert (result.outcome, result.failure) == ("failed", failure)
        assert result.message is not None
        assert words in result.message
        assert context.uploaded == []
        assert context.written

    on_bench(body)


@pytest.mark.parametrize("scheme", ["http", "rtmp", "tcp"])
def test_an_unreachable_input_is_a_network_failure(
    on_bench: OnBench, closed_port: int, scheme: str
) -> None:
    async def body(bench: Workbench) -> None:
        address = f"{scheme}://127.0.0.1:{closed_port}/live/x"
        result, _ = await transcode(bench, inputs=[address], output="a.mp4")
        assert (result.outcome, result.failure) == ("failed", "network")
        assert result.message is not None
        assert "Connection refused" in result.message

    on_bench(body)


def test_a_server_that_hangs_up_is_a_network_failure(on_bench: OnBench) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async def body(bench: Workbench) -> None:
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            address = f"http://127.0.0.1:{port}/clip.mp4"
            result, _ = await transcode(bench, inputs=[address], output="a.mp4")
        assert (result.outcome, result.failure) == ("failed", "network")
        assert result.message == f"{address}: End of file"

    on_bench(body)


def test_a_file_that_is_cut_off_is_no_network_failure(on_bench: OnBench, tmp_path: Path) -> None:
    async def body(bench: Workbench) -> None:
        empty = tmp_path / "clip.mp3"
        empty.write_bytes(b"")
        result, _ = await transcode(bench, inputs=[str(empty)], output="a.mp4")
        assert (result.outcome, result.failure) == ("failed", "execution")

    on_bench(body)


def test_an_unreachable_output_is_a_network_failure(on_bench: OnBench, closed_port: int) -> None:
    async def body(bench: Workbench) -> None:
        address = f"rtmp://127.0.0.1:{closed_port}/live/x"
        result, _ = await transcode(bench, inputs=[clip(1)], output=address, codec="flv")
        assert (result.outcome, result.failure) == ("failed", "network")

    on_bench(body)


def test_a_cancel_in_mid_transcode_ends_ffmpeg(on_bench: OnBench) -> None:
    async def body(bench: Workbench) -> None:
        endless = {"url": "testsrc=size=640x480:rate=30", "format": "lavfi", "options": ["-re"]}
        context = bench.context({"inputs": [endless], "output": "a.mkv", "codec": "mpeg4"})
        running = asyncio.create_task(FfmpegExecutor().run(context))
        await context.until_progress(2)
        pid = context.processes[0].pid
        assert is_alive(pid)
        context.stop()
        assert (await running).outcome == "canceled"
        assert not is_alive(pid)
        assert context.uploaded == []

    on_bench(body)


def test_arguments_that_do_not_fit_name_their_field(on_bench: OnBench) -> None:
    async def body(bench: Workbench) -> None:
        with pytest.raises(InvalidInput, match=r"args\.output"):
            await transcode(bench, inputs=["a.mp4"], output="../a.mp4")

    on_bench(body)
