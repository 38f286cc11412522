"""A job in each mode of isolation tries every way out, beside another job on the same worker.

Where the tests are run by root, workers run as root, as an ordinary user, and as one with
subordinate uids: all keep what the table says.
"""

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.debian import missing_reason
from tests.support.unprivileged import become_user, open_python, skip_reason
from tests.worker.isolation.ways import DEPENDS, WAYS, table
from tests.worker.rig import Rig, play
from windlass.worker.isolation.process import OWN_FILES
from windlass.worker.keeper.processes import look_at

HERE = Path(__file__).parent
GUIDE = HERE.parents[2] / "docs/concepts/isolation.md"
SOURCES = HERE.parents[2]
ORDINARY = 69_999  # a uid without an account
PATIENCE_S = 120
CLOSED = "/var/lib"  # where only root can make files


@contextmanager
def prepared(parent: str | None) -> Iterator[Path]:
    """A folder that every user can pass."""
    with tempfile.TemporaryDirectory(
        prefix="windlass-", ignore_cleanup_errors=True, dir=parent
    ) as folder:
        path = Path(folder)
        path.chmod(0o755)
        for name in ("data", "home", "open"):
            (path / name).mkdir(mode=0o700)
        (path / "open").chmod(0o1777)
        for secret in ("data/admin-token", "home/key"):
            (path / secret).write_text("secret")
            (path / secret).chmod(0o600)
        yield path


def _prefix(user: str, place: Path) -> list[str]:
    """The words before a command that starts it as a user, who gets the place."""
    if user == "root" or os.geteuid() != 0:
        return []
    if user == "subordinate":
        return become_user(place, place / "home")
    own = [] if place.parent == Path(CLOSED) else [place]
    for path in (*own, *place.rglob("*")):
        shutil.chown(path, ORDINARY, ORDINARY)
    return _as(ORDINARY)


def _as(uid: int) -> list[str]:
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]


@asynccontextmanager
async def agent(rig: Rig, mode: str, user: str) -> AsyncIterator[int]:
    """An agent in a process of its own; its pid."""
    place = rig.folder
    rig.bridge.path.chmod(0o777)
    python = sys.executable if user == "root" else open_python()
    paths = [str(SOURCES), str(SOURCES / "src"), *filter(None, sys.path)]
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(place / "home"), "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(paths), "SECRET": "hunter2",
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        *_prefix(user, place), python, "-m", "tests.worker.isolation.agent",
        str(rig.bridge.path), str(place / "data/w"), str(place / "data"), mode,
        cwd=place / "home", env=environ,
    )  # fmt: skip
    try:
        yield process.pid
        process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _victim(rig: Rig, told: dict[str, Any]) -> int:
    """Starts the job that is attacked, and tells the pids of its program and of the keeper."""
    source = (HERE / "victim.py").read_text()
    job = told["victim_job"] = await rig.submit(open_python(), "-S", "-c", source, json.dumps(told))
    (told["scratch"],) = await rig.files.log_line(job)
    words = json.dumps(told["abstract"]).encode()
    commands = {pid: _command(pid) for pid in _pids()}
    around = (b"bwrap ", b"windlass-reporter ")
    (pid,) = [pid for pid, one in commands.items() if words in one and not one.startswith(around)]
    chain = [pid]
    while (seen := look_at(chain[-1])) is not None and seen.parent != told["agent"]:
        chain.append(seen.parent)
    told["victim"], told["keeper"] = pid, chain[-2]  # the last is the keeper's guard
    return job


def _pids() -> list[int]:
    """All processes, the innermost of each job last."""
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def _command(pid: int) -> bytes:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return b""
    return b" ".join([os.path.basename(words[0]), *words[1:]])


async def _tried(rig: Rig, mode: str, user: str) -> dict[str, str]:
    """What the job found in a mode."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with agent(rig, mode, user) as pid:
            told: dict[str, Any] = {
                "agent": pid, "state": str(rig.folder / "data/w"), "data": str(rig.folder / "data"),
                "home": str(rig.folder / "home"), "tmp": str(rig.folder / "open"),
                "abstract": f"windlass-{os.getpid()}-{mode}", "port": server.getsockname()[1],
                "salt": os.getpid() * 4 + (user == "root"),
            }  # fmt: skip
            victim = await _victim(rig, told)
            as_agent = [] if os.geteuid() != 0 else _as(_uid_of(pid))
            bystander = await asyncio.create_subprocess_exec(*as_agent, "sleep", "99")
            told["bystander"] = bystander.pid
            source = (HERE / "escape.py").read_text()
            job = await rig.submit(open_python(), "-S", "-c", source, json.dumps(told), retries=0)
            await rig.ended(job)
            (line,) = await rig.files.log_line(job)
            found: dict[str, str] = json.loads(line)
            await _look_for_daemons(rig, told["salt"], found)
            bystander.kill()
            await bystander.wait()
            await rig.engine.jobs.cancel([victim])
            await rig.ended(victim)
            return found


def _uid_of(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("Uid:")[2].split()[0])


async def _look_for_daemons(rig: Rig, salt: int, found: dict[str, str]) -> None:
    """Waits for the end of the plain daemon, and sees whether the other lives."""
    for _ in range(6_000):
        names = {_command(pid).partition(b" ")[0].decode() for pid in _pids()}
        if f"sleep-{salt}" not in names:
            found["daemon"] = "stopped: it has ended"
            if f"other-sleep-{salt}" not in names:
                found["other_daemon"] = "stopped: it has ended"
            return
        await rig.clock.sleep_ms(10)


@pytest.mark.parametrize(
    ("mode", "user", "own_files"),
    [
        ("process", "ordinary", "view"),
        ("process", "ordinary", "rules"),
        ("user", "root", "open"),
        ("user", "subordinate", "view"),
        ("sandbox", "ordinary", "view"),
        ("sandbox", "root", "open"),
    ],
)
def test_a_job_gets_out_only_where_the_table_says_so(mode: str, user: str, own_files: str) -> None:
    why = missing_reason("bwrap") if mode == "sandbox" else skip_reason(mode)
    if user == "subordinate":
        why = missing_reason("newuidmap")
    if (user != "ordinary" or own_files == "rules") and os.geteuid() != 0:
        why = "only root can be, or make, another user or a place that nobody else can write to"
    if why is not None:
        pytest.skip(why)
    results: dict[str, str] = {}

    async def scene(rig: Rig) -> None:
        results.update(await _tried(rig, mode, user))

        (worker,) = await rig.store.read(lambda tx: tx.workers.all())
        assert json.loads(worker.dynamic)[OWN_FILES] == own_files

    with prepared(CLOSED if own_files == "rules" else None) as place:
        play(place, scene)
    wrong = [
        f"{way.name}: expected {way.outcome(mode)}, got {results[way.name]}"
        for way in WAYS
        if way.outcome(mode) not in (DEPENDS, results[way.name].partition(":")[0])
    ]
    assert not wrong, "\n".join(wrong)
    assert len(results) >= 30


def test_the_guide_shows_the_table_that_was_tried() -> None:
    assert "\n".join(table()) in GUIDE.read_text()
