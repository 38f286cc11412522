"""What an agent finds out about its machine."""

import os
import platform
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.support.debian import missing_reason
from tests.support.running import run
from tests.worker.rig import Rig, play
from windlass.domain.matching.clauses import canonical_requires
from windlass.domain.matching.matching import mismatches
from windlass.domain.tasks.ffmpeg import FfmpegTask
from windlass.worker.agent.metadata import (
    TOOLS,
    OtherUsers,
    architecture_of,
    encoder_names,
    gather,
    jobs_in,
    quick_facts,
)
from windlass.worker.isolation.job_users import try_users
from windlass.worker.isolation.modes import Modes
from windlass.worker.isolation.sandbox import NOBODY, SandboxMode, Visible


def test_the_quick_facts_need_nobody() -> None:
    facts = quick_facts()
    assert facts["system:cpus"] >= 1
    assert facts["system:memory"] > 2**20
    assert facts["system:os"] == "linux"
    assert facts["system:hostname"] == platform.node()
    assert facts["git:available"] is (shutil.which("git") is not None)


@pytest.mark.parametrize(
    ("machine", "name"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("odd", "odd")]
)
def test_architectures_go_by_their_debian_names(machine: str, name: str) -> None:
    assert architecture_of(machine) == name


LOOPS = pytest.mark.parametrize("run", [run, uvloop.run])  # workers use uvloop


@LOOPS
def test_tools_are_asked_for_their_versions(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Answers are kept by PATH.
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/of/{run.__module__}")
    facts = run(gather())
    assert run(gather()) == facts  # as when a program starts its worker again
    assert facts["python:version"].startswith("3.")
    assert "ffmpeg:version" not in facts or facts["ffmpeg:available"]
    assert "=" not in facts.get("ffmpeg:encoders", ())


LISTED = """\
Encoders:
 V..... = Video
 .F.... = Frame-level multithreading
 ------
 V....D libx264              libx264 H.264 / AVC / MPEG-4 AVC / MPEG-4 part 10 (codec h264)
 V....D mpeg4                MPEG-4 part 2
 A....D aac                  AAC (Advanced Audio Coding)
 A....D libmp3lame           libmp3lame MP3 (MPEG audio layer 3) (codec mp3)
"""


def test_names_of_encoders_and_of_their_codecs_count() -> None:
    assert encoder_names(LISTED) == ["aac", "h264", "libmp3lame", "libx264", "mp3", "mpeg4"]


@pytest.mark.parametrize(
    "named",
    [{"codec": "h264"}, {"codec": "libx264"}, {"options": ["-c:v", "h264", "-vcodec", "h264"]}],
)
def test_a_job_may_name_the_codec_that_ffmpeg_encodes(named: dict[str, object]) -> None:
    facts = {"ffmpeg:available": True, "ffmpeg:encoders": encoder_names(LISTED)}
    plan = FfmpegTask().check({"inputs": ["a.mkv"], "output": "b.mp4", **named})
    assert tuple(mismatches("ffmpeg", canonical_requires(plan.requires), (), facts)) == ()
    plan = FfmpegTask().check({"inputs": ["a.mkv"], "output": "b.mp4", "codec": "hevc"})
    assert len(tuple(mismatches("ffmpeg", canonical_requires(plan.requires), (), facts))) == 1


def test_a_worker_tells_what_it_found(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(metadata={"rack": "b7"}):
            job = await rig.submit("true", requires=("rack == b7", "python:version matches >=3"))
            await rig.ended(job)

    play(tmp_path, scene)


def test_tools_are_those_that_jobs_of_a_sandbox_can_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)
    tools = tmp_path / "tools"
    tools.mkdir(mode=0o755)
    for name, line in {"ffmpeg": "echo version 7.1.2", "cmake": "exit 3", "ninja": ""}.items():
        start = "#!/nowhere/sh" if name == "ninja" else "#!/bin/sh"
        (tools / name).write_text(f"{start}\n{line}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    async def facts(**visible: tuple[Path, ...]) -> dict[str, Any]:
        uids, lacking = try_users()
        assert lacking is None or os.geteuid() != 0, lacking
        mode = SandboxMode(Visible(**visible), tmp_path / "filter", uids)
        assert await mode.why_not() is None
        return {**quick_facts(mode), **await gather(mode)}

    names = ("ffmpeg:available", "cmake:available", "ninja:available", "ffmpeg:version")
    unseen = run(facts())
    assert [unseen.get(name) for name in names] == [False, False, False, None]
    shared = run(facts(shared=(tools,)))
    assert [shared.get(name) for name in names] == [True, True, False, "7.1.2"]
    plain = run(gather())
    assert [plain.get(name) for name in names] == [True, True, True, "7.1.2"]


@LOOPS
def test_tools_are_those_that_users_without_an_account_can_start(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="windlass-tools-") as tools:  # not below our home
        modes = {"ffmpeg": 0o755, "cmake": 0o700, "make": 0o711, "ninja": 0o755}
        for name, mode in modes.items():
            start = "#!/nowhere/sh" if name == "ninja" else "#!/bin/sh"
            (Path(tools) / name).write_text(f"{start}\necho version 7.1.$(id -u)\n")
            (Path(tools) / name).chmod(mode)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

        async def facts() -> dict[str, Any]:
            jobs = OtherUsers()
            return {**quick_facts(jobs), **await gather(jobs)}

        names = [f"{name}:available" for name in modes]
        Path(tools).chmod(0o755)
        told = run(facts())
        assert [told[name] for name in names] == [True, False, False, False]
        assert told["ffmpeg:version"] == f"7.1.{NOBODY if os.geteuid() == 0 else os.geteuid()}"
        Path(tools).chmod(0o700)
        told = run(facts())
        assert [told[name] for name in names] == [False] * 4
        assert "ffmpeg:version" not in told


def test_a_worker_whose_jobs_run_in_images_tells_of_no_tools() -> None:
    modes = Modes("container")

    async def facts() -> dict[str, Any]:
        return {**quick_facts(jobs_in(modes)), **await gather(jobs_in(modes))}

    told = run(facts())
    assert {told[f"{tool.name}:available"] for tool in TOOLS} == {False}
    assert not [name for name in told if name.endswith((":version", ":encoders"))]


def test_a_worker_says_from_the_start_what_its_jobs_can_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    async def scene(rig: Rig) -> None:
        users = () if try_users()[1] is not None else (("user", False),)  # pytest's own folder
        for mode, available in (("sandbox", False), ("process", True), *users):
            async with rig.agent(mode, isolation=mode) as agent:
                assert agent.machine.metadata["ffmpeg:available"] is available

    play(tmp_path, scene)
