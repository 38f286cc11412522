"""How a program ended is known in every mode of isolation: a code above 128 is no signal."""

import asyncio
import base64
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.executors.python.test_in_agent import FUNCTIONS
from tests.support.debian import missing_reason
from tests.support.forms import LONG, by_form
from tests.support.unprivileged import is_open, skip_reason
from tests.worker.isolation.build_reporter import compile_for, compiler, digest_of_source
from tests.worker.rig import Rig, play
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.domain.rows.records import JobRecord
from windlass.executors.loading import load_executors
from windlass.executors.media import FFMPEG_REPORT
from windlass.ports.executor import JobContext, Result
from windlass.worker.isolation.reporter import (
    CODE,
    MACHINES,
    MADE_BY,
    MADE_FROM,
    reporter_program,
)

SOURCES: Final = Path(__file__).parents[3]
STOPPING: Final = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
IGNORED: Final = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH}
OF_THE_C_LIBRARY: Final = {32, 33}  # which it has programs ignore
TOLD: Final = set(range(1, signal.NSIG)) - STOPPING - IGNORED - OF_THE_C_LIBRARY
AT_ONCE: Final = 16

Ends = dict[str, tuple[int | None, int | None]]

# A tool that fails as ffmpeg does when its source refuses the connection.
REFUSED: Final = f"""#!/bin/sh
[ -z "$FFREPORT" ] || echo 'tcp://127.0.0.1:9: Connection refused' >{FFMPEG_REPORT}
exit 145
"""

# A tool that ends as the name of its output says.
AS_ASKED: Final = """#!/bin/sh
for output; do :; done
how=$(basename "$output" .mkv); how=${how#how}
case $how in -*) kill "$how" $$ ;; *) exit "$how" ;; esac
"""
ONCE: Final[Mapping[str, Any]] = {"retries": 0}
MESSAGES: Final = {
    "shell": ("exit code {}", "killed by {}"),
    "media": ("ffmpeg exited with code {}", "ffmpeg was killed by signal {:d}"),
    "python": ("its process exited with code {}", "its process was killed by signal {:d}"),
}
MAX_S: Final = by_form(60, 600)
# In the long form all of them.
CODES: Final = range(1, 256) if LONG else (1, 137, 145, 255)
SIGNALS: Final = sorted(TOLD) if LONG else (signal.SIGKILL, signal.SIGXCPU, signal.SIGRTMIN)


@pytest.fixture(params=["process", "user", "sandbox"])
def mode(request: pytest.FixtureRequest) -> str:
    """A mode that this machine can do."""
    why = missing_reason("bwrap") if request.param == "sandbox" else skip_reason(request.param)
    if why is not None:
        pytest.skip(why)
    return str(request.param)


class EndsOfAllKinds:
    """Implements `Executor`: runs a program for each way to end."""

    task = "shell"

    def __init__(self) -> None:
        self.found: Ends = {}

    async def run(self, context: JobContext) -> Result:
        several = asyncio.Semaphore(AT_ONCE)

        async def end(line: str) -> None:
            async with several:
                process = await context.spawn(["sh", "-c", line])
                ended = await process.wait()
                self.found[line] = (ended.code, ended.signal)

        async with asyncio.TaskGroup() as group:
            for line in expected_ends():
                group.create_task(end(line))
        return Result()

    async def close(self) -> None: ...


def expected_ends() -> Ends:
    """Every exit code and signal, and what a parent is told of it."""
    codes: Ends = {f"exit {code}": (code, None) for code in range(256)}
    signals: Ends = {
        f"kill -{number} $$": (0, None) if number in IGNORED else (None, number)
        for number in range(1, signal.NSIG)
        if number not in STOPPING | OF_THE_C_LIBRARY
    }
    return codes | signals


@pytest.fixture
def ignoring() -> Iterator[None]:
    """This process ignores what one in the background of a script does, and a few signals more."""
    numbers = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR2, signal.SIGALRM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("ignoring")
def test_every_exit_code_and_every_signal_is_told_apart(tmp_path: Path, mode: str) -> None:
    async def scene(rig: Rig) -> None:
        every = EndsOfAllKinds()
        async with rig.agent(isolation=mode, executors={"shell": every}) as agent:
            assert agent.machine.isolation.default == mode, agent.machine.isolation.lacking
            await rig.ended(await rig.submit("ignored"))
        assert every.found == expected_ends()

    play(tmp_path, scene)


def test_jobs_of_each_kind_fail_for_what_really_happened(
    tmp_path: Path, mode: str, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    async def scene(rig: Rig) -> None:
        runs = load_executors(["shell", "python", "ffmpeg"])
        shares = (SOURCES, tools)
        async with rig.agent(isolation=mode, executors=runs, slots=4, shares=shares):
            shell = [
                await rig.submit("sh", "-c", line, retries=0)
                for line in ("exit 137", "exit 145", "kill -9 $$", "kill -15 $$", "kill -XCPU $$")
            ]
            clip = {"url": "testsrc=duration=1", "format": "lavfi"}
            media = await rig.submit(
                task="ffmpeg", args={"inputs": [clip], "output": "a.mkv"}, retries=0
            )
            ended = await _function(rig, "137")
            killed = await _function(rig, "SIGKILL")
            assert [_how(await rig.ended(job)) for job in shell] == [
                ("execution", 137, "exit code 137"),
                ("execution", 145, "exit code 145"),
                ("execution", 137, "killed by SIGKILL"),
                ("execution", 143, "killed by SIGTERM"),
                ("execution", 152, "killed by SIGXCPU"),
            ]
            failure, code, _ = _how(await rig.ended(media))
            assert (failure, code) == ("network", 145)
            if mode == "user" and not is_open(Path(sys.executable)):
                return  # Other users cannot start this Python.
            _, code, message = _how(await rig.ended(ended))
            assert (code, message) == (137, "its process exited with code 137")
            assert (await rig.ended(killed)).message == "its process was killed by signal 9"

    play(tmp_path, scene)


# Other users may not be able to start this Python.
PAIRS: Final = [
    (mode, kind)
    for mode in ("process", "user", "sandbox")
    for kind in ("shell", "media", "python")
    if (mode, kind) != ("user", "python") or is_open(Path(sys.executable))
]


@pytest.mark.parametrize(("mode", "kind"), PAIRS, indirect=["mode"])
def test_every_way_in_which_a_job_fails_is_told_apart(
    tmp_path: Path, mode: str, kind: str, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    (tools / "ffmpeg").write_text(AS_ASKED)

    async def scene(rig: Rig) -> None:
        runs = load_executors(["shell", "python", "ffmpeg"])
        async with rig.agent(isolation=mode, executors=runs, slots=8, shares=(SOURCES, tools)):
            codes = {code: await rig.submit(**_ends(kind, str(code))) for code in CODES}
            signals = {n: await rig.submit(**_ends(kind, f"-{n}")) for n in SIGNALS}
            exited, killed = MESSAGES[kind]
            for code, job in codes.items():
                record = await rig.ended(job)
                assert (record.exit_code, record.message) == (code, exited.format(code))
            for number, job in signals.items():
                name = name_of(number) if kind == "shell" else number
                assert (await rig.ended(job)).message == killed.format(name)

    play(tmp_path, scene, most_s=MAX_S)


def _ends(kind: str, how: str) -> dict[str, Any]:
    """What to submit: a job that exits with a code, or that this signal kills."""
    if kind == "python":
        return {"task": "python", "args": {"function": f"{FUNCTIONS}:die", "args": [how]}, **ONCE}
    if kind == "media":
        clip = {"url": "testsrc=duration=1", "format": "lavfi"}
        return {"task": "ffmpeg", "args": {"inputs": [clip], "output": f"how{how}.mkv"}, **ONCE}
    line = f"kill {how} $$" if how.startswith("-") else f"exit {how}"
    return {"args": {"argv": ["sh", "-c", line]}, **ONCE}


def name_of(number: int) -> str:
    """What messages call a signal."""
    names = {int(one): one.name for one in signal.Signals}
    return names.get(number, f"signal {number}")


@pytest.fixture
def tools() -> Iterator[Path]:
    """A folder with an ffmpeg of ours, which every user can start; pytest's folder is closed."""
    with tempfile.TemporaryDirectory(prefix="windlass-tools-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        program = folder / "ffmpeg"
        program.write_text(REFUSED)
        program.chmod(0o755)
        yield folder


async def _function(rig: Rig, how: str) -> int:
    call = {"function": f"{FUNCTIONS}:die", "args": [how]}
    return await rig.submit(task="python", args=call, retries=0)


def _how(record: JobRecord) -> tuple[str | None, int | None, str]:
    return FAILURE_BY_CODE[record.failure], record.exit_code, record.message or ""


def test_the_program_that_reports_was_made_from_its_source() -> None:
    """Its own compiler makes the same bytes again; another one may make others."""
    assert digest_of_source() == MADE_FROM, "run python -m tests.worker.isolation.build_reporter"
    for tool in ("clang", "llvm-profdata"):  # Debian's llvm has all its tools
        if (why := missing_reason(tool)) is not None:
            pytest.skip(why)
    if compiler() == MADE_BY:
        made = {machine: compile_for(machine) for machine in CODE}
        assert made == {machine: base64.b64decode(code) for machine, code in CODE.items()}
    assert {machine for machine in MACHINES if reporter_program(machine)} == set(MACHINES)
    assert reporter_program("pdp11") is None
