"""The log, processes and files of an attempt, each on its own."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.files import MemoryFiles
from tests.support.virtual import run_virtual
from windlass.clock import RealClock
from windlass.ports.gateway import Holder
from windlass.worker.attempt.context import AgentContext, IndexUse
from windlass.worker.attempt.files import Files
from windlass.worker.attempt.log import AttemptLog
from windlass.worker.attempt.processes import Processes
from windlass.worker.attempt.records import Records
from windlass.worker.attempt.secrets import Mask, Secrets
from windlass.worker.core.ports import Deadline, Rules
from windlass.worker.isolation.modes import Modes
from windlass.worker.keeper.kept_process import KeptProcess, Program, SpawnFailed
from windlass.worker.keeper.scratch import Scratch

HOLDER = Holder(1, 1, 7, 1)


class FakeKeeper:
    """Notes what it is asked for; a test says how it goes on."""

    base: Mapping[str, str] = {"PATH": "/bin"}
    grace_ms = 1_000

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.sent: list[tuple[Any, ...]] = []
        self.fails: Exception | None = None
        self.processes: list[KeptProcess] = []

    def spawn(
        self,
        program: Program,
        *,
        stdin: int | None = None,
        stdout: int | None = None,
        tag: bytes = b"\0",
    ) -> KeptProcess:
        self.asked.append({**msgspec.structs.asdict(program), "tag": tag})
        process = KeptProcess(self, len(self.asked))
        process.failed = self.fails
        self.processes.append(process)
        if self.fails is None:
            asyncio.get_running_loop().call_soon(process.begin, len(self.asked))
        return process

    def send(self, message: tuple[Any, ...]) -> None:
        self.sent.append(message)


class NoSocket:
    path = None

    def admit(self, key: object, submit: object) -> dict[str, str]:
        return {}

    def dismiss(self, key: object) -> None:
        """Nobody was admitted."""


def context(folder: Path, gateway: Any, removed: list[Path]) -> AgentContext:
    deadline = Deadline(Rules(1_000, 60_000, 1_000), lambda: 0.0)
    deadline.extend(0.0)
    return AgentContext(
        Records(RealClock()), gateway, FakeKeeper(), Scratch(folder, removed.append),
        RealClock(), 1, 1, 0, 1_000,
        deadline, Secrets(), NoSocket(), IndexUse(), Modes(),
    )  # fmt: skip


def spawned(keeper: FakeKeeper, **more: Any) -> Processes:
    """Processes with one that was started."""
    processes = Processes(keeper, 7, lambda data: None, lambda fd: None)
    program = Program(argv=("true",), env={"A": "1"}, cwd="/x", make=True)

    async def main() -> None:
        await processes.spawn(program, **{"stdin": None, "capture": False, **more})

    run_virtual(main())
    return processes


def test_a_process_sees_its_own_variables_beside_the_base() -> None:
    keeper = FakeKeeper()
    spawned(keeper)
    seen = [(ask["env"], ask["whole"], ask["tag"]) for ask in keeper.asked]
    assert seen == [({"A": "1"}, False, b"WINDLASS_JOB=7")]


def test_processes_are_stopped_together_and_tell_how_they_ended() -> None:
    keeper = FakeKeeper()
    processes = spawned(keeper)
    assert processes.left_files  # it may still write some
    processes.stop(500)
    assert keeper.sent == [("stop", 1, 0.5)]
    keeper.processes[0].end(0, "", False, False, 4_096, 0.1)
    assert (processes.fenced, processes.left_files, processes.peak_memory) == (False, False, 4_096)
    processes.stop(0)
    assert len(keeper.sent) == 1  # it has ended
    keeper.processes[0].end(-15, "", True, True, 0, 0.1)
    assert (processes.fenced, processes.left_files) == (True, True)


def test_a_program_that_cannot_start_raises() -> None:
    keeper = FakeKeeper()
    keeper.fails = SpawnFailed(2, "cannot start x: No such file or directory")
    with pytest.raises(SpawnFailed, match="cannot start x"):
        spawned(keeper)


def test_a_log_notes_activity_and_hides_secrets(tmp_path: Path) -> None:
    async def main() -> None:
        files, active = MemoryFiles(), []
        around = context(tmp_path, files, [])
        log = AttemptLog(around, HOLDER, Mask(["hunter2"]), lambda: active.append(1))
        log.write(b"the word is hunt")
        log.write(b"er2\n")
        assert active == [1, 1]
        assert not log.full(lambda: None)
        await log.finish(4_096, lost=False)
        assert b"hunter2" not in files.logs[7, 1]
        assert files.logs[7, 1].startswith(b"the word is ")

    run_virtual(main())


def test_a_lost_log_is_dropped(tmp_path: Path) -> None:
    async def main() -> None:
        files = MemoryFiles()
        log = AttemptLog(context(tmp_path, files, []), HOLDER, None, lambda: None)
        log.write(b"never seen\n")
        await log.finish(0, lost=True)
        assert not files.logs.get((7, 1))

    run_virtual(main())


def test_a_folder_is_used_again_unless_something_was_left_in_it(tmp_path: Path) -> None:
    removed: list[Path] = []
    around = context(tmp_path, MemoryFiles(), removed)
    first = Files(around, HOLDER)
    folder = first.folder()
    assert first.folder() == folder
    assert not folder.exists()
    first.give_back(dirty=False)
    second = Files(around, HOLDER)
    assert second.folder() == folder
    second.give_back(dirty=True)
    assert removed == [folder]
    third = Files(around, HOLDER)
    made = third.made_folder()
    assert made.is_dir()
    third.give_back(dirty=False)
    assert removed == [folder, made]


def test_files_that_match_are_uploaded_and_missing_patterns_are_told(tmp_path: Path) -> None:
    async def main() -> None:
        stored = MemoryFiles()
        missing: list[str] = []
        files = Files(context(tmp_path, stored, []), HOLDER)
        (files.made_folder() / "out.txt").write_text("hello")
        await files.upload(["*.txt", "*.log"], missing.append)
        assert missing == ["*.log"]
        assert [name for _, name in stored.artifacts] == ["out.txt"]

    run_virtual(main())
