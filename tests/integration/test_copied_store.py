"""`windlass db copy` between SQLite and PostgreSQL: every table, and an installation at work."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.store.conformance.driver import Driver, PostgresDriver, SqliteDriver
from tests.store.conformance.everything import CHANGE, FILL
from tests.support.fleet import Fleet
from tests.support.running import run
from tests.support.waiting import until
from windlass.assembly.copying import copy_store
from windlass.assembly.stores import open_store
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, StoreUnavailable
from windlass.store.sql.snapshot import Snapshot

OF_THE_DATABASE = ("identity", "is_backup")
MAX_S = 120
# The worker runs its jobs on for as long as a lease lasts, which is longer than any copy here.
TIMES = ("--set", "heartbeat_interval=1s", "--set", "heartbeat_timeout=10m")


def taken(store: Driver) -> tuple[Snapshot, object]:
    """Returns what a store holds, without what only its database has."""
    with store:
        found = store.snapshot()
        events = store.transact(lambda tx: tx.log.read(0, 1_000))
    meta = tuple(pair for pair in found.meta if pair[0] not in OF_THE_DATABASE)
    return found._replace(meta=meta), events


@pytest.mark.parametrize("changed", [False, True])
def test_a_copy_has_every_row_of_every_table_there_and_back(
    tmp_path: Path, postgres_dsn: str, changed: bool
) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    with SqliteDriver(first) as store:
        for step in (*FILL, *(CHANGE if changed else ())):
            store.transact(step)
    before = taken(SqliteDriver(first))
    with SqliteDriver(first) as store:
        following = store.transact(lambda tx: tx.jobs.allocate(1))
    copied = run(copy_store(f"sqlite://{first}", postgres_dsn))
    assert {one.name: one.rows for one in copied}["jobs"] == len(before[0].jobs)
    assert taken(PostgresDriver(postgres_dsn)) == before
    with PostgresDriver(postgres_dsn) as store:
        assert store.transact(lambda tx: tx.jobs.allocate(1))[0] == following[0] + 1
    run(copy_store(postgres_dsn, f"sqlite://{second}"))
    assert taken(SqliteDriver(second)) == before
    with pytest.raises(Conflict, match="already"):
        run(copy_store(f"sqlite://{second}", postgres_dsn))


async def moved(folder: Path, target: str) -> None:
    """Moves an installation while a worker runs a job and others wait."""
    fleet = Fleet(folder, f"sqlite://{folder}/windlass.db", times=TIMES)
    try:
        await fleet.start_servers()
        await fleet.start_worker("worker-1")
        gate = folder / "gate"
        wait = f"while [ ! -e {gate} ]; do sleep 0.1; done; echo $WINDLASS_JOB_ID"
        jobs = [JobSpec(task="shell", args={"argv": ["sh", "-c", wait]})] * 8
        async with AsyncClient(fleet.address, fleet.token) as client:
            first = await client.submit_many([JobSpec(task="shell", args={"argv": ["true"]})] * 3)
            await asyncio.gather(*(job.result() for job in first))
            made = await client.submit_many(jobs)
            await until("jobs run", lambda: count(client, "running", 3), MAX_S)
            await fleet.stop_servers()
            source = f"sqlite://{folder}/windlass.db"
            code, said = await fleet.run("db", "copy", source, target, "--json")
            assert code == 0, fleet.tails()
            rows = {one["name"]: one["rows"] for one in json.loads(said)["tables"]}
            assert (rows["jobs"], rows["leases"], rows["ready"]) == (11, 3, 5)
            await fleet.continue_on(target)
            gate.touch()
            await asyncio.gather(*(job.result() for job in made))
            assert {(await job.info()).attempt for job in made} == {1}
        code, said = await fleet.run("verify", "--json")
        assert (code, json.loads(said)["violations"]) == (0, [])
    except BaseException as error:
        error.add_note(fleet.tails())
        raise
    finally:
        await fleet.stop()


async def count(client: AsyncClient, state: str, expected: int) -> bool:
    """Returns whether this many jobs are in a state."""
    return len(await client.jobs(state=state)) == expected


def test_a_worker_waits_for_the_copy_and_loses_nothing(tmp_path: Path, postgres_dsn: str) -> None:
    run(moved(tmp_path, postgres_dsn))
    code = run(refused(f"sqlite://{tmp_path}/windlass.db"))
    assert code == "store_restored"


async def refused(url: str) -> str:
    """Returns why a store cannot be opened."""
    with pytest.raises(StoreUnavailable) as error:
        await open_store(url)
    return error.value.code
