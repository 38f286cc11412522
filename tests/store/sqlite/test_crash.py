"""kill -9 in the middle of writing: what was acknowledged is there, the rest is not."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.sqlite.driving import close, open_store, read
from windlass.domain.rows.events import Event
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.store import SqliteStore

BATCH = 50


async def write(tx: WriteTx) -> int:
    """Allocate ids and log an event for each: both or neither must survive."""
    ids = await tx.jobs.allocate(BATCH)
    await tx.log.append([Event(0, tx.now, 2, job, 0, 0, 0, 0, 0, None, None, None) for job in ids])
    return ids[-1]


def write_for_ever(path: str) -> None:
    """Tell of each commit after it happened. Runs in the process that is killed."""
    store = open_store(Path(path))

    async def loop(store: SqliteStore) -> None:
        while True:
            sys.stdout.write(f"{await store.transact(write)}\n")
            sys.stdout.flush()

    asyncio.run(loop(store))


@pytest.mark.parametrize("commits", [1, 30, 200])
def test_acknowledged_commits_survive_a_kill(tmp_path: Path, commits: int) -> None:
    path = tmp_path / "windlass.db"
    program = (
        "import sys\n"
        "from tests.store.sqlite.test_crash import write_for_ever\n"
        "write_for_ever(sys.argv[1])\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(commits)]
        child.send_signal(signal.SIGKILL)
        told += [int(line) for line in child.stdout if line.endswith("\n")]

    store = open_store(path)
    events = read(store, lambda tx: tx.log.read(0, 10_000_000))
    jobs = [event.job for event in events]
    assert len(jobs) % BATCH == 0
    assert jobs == list(range(1, len(jobs) + 1))
    assert len(jobs) >= told[-1]
    assert asyncio.run(store.transact(write)) == len(jobs) + BATCH
    close(store)
