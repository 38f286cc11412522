"""Shell jobs on an empty fleet with a local pool: workers appear, work, and leave."""

import json
import math
import os
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.support.fleet import Fleet
from tests.support.forms import by_form
from tests.support.pool_log import pool_log, read_log
from tests.support.running import run
from tests.support.waiting import until
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import WindlassError
from windlass.domain.values.quantities import parse_moment
from windlass.messages.jobs import Job
from windlass.providers.local import workers_below

JOBS = by_form(100, 200)
NEEDED = 4  # of workers, for the target below
POLL_S = 0.25  # a list of all jobs takes the server as long as starting some of them
LIMIT_S = 600
EXPECTED_S = 0.1  # of a job; it sleeps for half of that

POOL = {
    "name": "here",
    "provider": "local",
    "target_latency_seconds": JOBS * EXPECTED_S / NEEDED,
    "max_idle_seconds": 2,
    "max_workers": 20,
    "expected_seconds": EXPECTED_S,
    "start_timeout_seconds": 60,
    "failure_cooldown_seconds": 1,
}

# Agents ride out a server that is being started again.
TIMES = (
    "--set", "heartbeat_interval=2s",
    "--set", "heartbeat_timeout=60s",
    "--set", "term_grace=1s",
    "--set", "health_interval=1s",
    "--set", "pools_interval=300ms",
)  # fmt: skip


def job(marks: Path) -> JobSpec:
    """It leaves a line with its number, and takes a moment."""
    argv = ["sh", "-c", 'echo "$WINDLASS_JOB" >> "$0"; sleep 0.05', str(marks)]
    return JobSpec(task="shell", args={"argv": argv})


async def completed(client: AsyncClient) -> int:
    try:
        return len(await client.jobs(limit=JOBS, state=["completed"]))
    except WindlassError:
        return -1


async def living(client: AsyncClient) -> int:
    """How many workers the pool has; many while no server answers."""
    try:
        return len((await client.pools.show("here")).workers)
    except WindlassError:
        return JOBS


async def play(folder: Path, store: str, kill_at: Sequence[int], servers: int = 1) -> None:
    fleet = Fleet(folder, store, times=TIMES, servers=servers)
    description = folder / "pool.json"
    description.write_text(json.dumps(POOL))
    try:
        await fleet.start_servers()
        assert await fleet.run("pools", "apply", str(description)) == (0, b"here: applied\n")
        async with AsyncClient(fleet.address, fleet.token) as client:
            ids = [made.id for made in await client.submit_many([job(folder / "marks")] * JOBS)]
            await drain(fleet, client, kill_at)
            shown = await client.jobs(limit=JOBS)
            costs = (await client.pools.costs()).costs
        code, said = await fleet.run("verify", "--json")
        assert (code, json.loads(said)) == (0, {"violations": []})
        assert Counter(one.state for one in shown) == {"completed": JOBS}
        assert sum(cost.seconds for cost in costs) > 0
    except BaseException as error:
        error.add_note(fleet.tails())
        raise
    finally:
        await fleet.stop()
        left = workers_below(folder)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
    assert left == []
    ran = Counter((folder / "marks").read_text().split())
    assert set(ran) == {str(number) for number in ids}
    await check_log(store, bool(kill_at), max(map(seconds_of, shown)))
    if not kill_at:
        assert set(ran.values()) == {1}


async def drain(fleet: Fleet, client: AsyncClient, kill_at: Sequence[int]) -> None:
    """Wait until all is done and all have left, killing the server on the way."""
    for number, count in enumerate(kill_at):
        name = fleet.servers[number % len(fleet.servers)]

        async def moved_on(count: int = count) -> bool:
            return await completed(client) >= count

        await until(f"{count} jobs completed", moved_on, LIMIT_S, POLL_S)
        await fleet.kill(name)
        await fleet.start_server(name)

    async def all_done() -> bool:
        return await completed(client) == JOBS

    await until("all jobs completed", all_done, LIMIT_S, POLL_S)

    async def all_gone() -> bool:
        return await living(client) == 0

    await until("all workers left", all_gone, LIMIT_S, POLL_S)


def seconds_of(one: Job) -> float:
    """How long a job ran, as the server has measured it."""
    assert one.started_at is not None
    assert one.finished_at is not None
    ends = parse_moment(one.finished_at, "finished_at"), parse_moment(one.started_at, "started_at")
    return (ends[0] - ends[1]) / 1_000


async def check_log(store: str, killed: bool, slowest: float) -> None:
    """The count follows the formula, and nobody was sent away with a job in hand.

    On a busy machine jobs take longer than the pool expects, and it then needs more workers.
    """
    told = pool_log(await read_log(store))
    assert told.asked[0] == NEEDED, told
    assert [entry for entry in told.ended if entry[2]] == []
    assert sorted(told.gone) == sorted(token for token, _, _ in told.ended)
    if not killed:
        assert sum(told.asked) <= math.ceil(NEEDED * max(1, slowest / EXPECTED_S)), told
        assert all(why.startswith("idle for ") for _, why, _ in told.ended), told


def test_workers_appear_do_the_work_and_leave(tmp_path: Path) -> None:
    run(play(tmp_path, f"sqlite://{tmp_path}/windlass.db", kill_at=()))


def test_the_same_with_the_server_killed_twice(tmp_path: Path) -> None:
    run(play(tmp_path, f"sqlite://{tmp_path}/windlass.db", kill_at=(1, JOBS // 2)))


def test_the_same_with_two_servers_on_postgresql_each_killed(
    tmp_path: Path, postgres_dsn: str
) -> None:
    run(play(tmp_path, postgres_dsn, kill_at=(1, JOBS // 2), servers=2))
