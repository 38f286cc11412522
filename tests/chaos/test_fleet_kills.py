"""Servers and workers killed −9 amid many jobs: nothing is lost, doubled or stuck."""

import asyncio
import json
from collections import Counter
from pathlib import Path

from tests.support.fleet import Fleet
from tests.support.forms import by_form
from tests.support.running import run
from tests.support.waiting import until
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State, is_terminal
from windlass.domain.values.errors import Unreachable, WindlassError

JOBS = by_form(500, 2_000)  # as many kills in both
BATCH = 250
WORKERS = 3
SERVER_KILLS = 3
WORKER_KILLS = 5
POLL_S = 0.25  # a list of all jobs takes the server as long as starting some of them
LIMIT_S = 600  # a bound for machines under load; alone it takes a fraction of that

OPEN = [str(state) for state in State if not is_terminal(state)]


def requests(first: int, marks: Path) -> list[JobSpec]:
    """Each leaves a line with its attempt; some fail once for want of a network."""
    line = 'echo "$WINDLASS_JOB $WINDLASS_ATTEMPT" >> "$0"'
    fails = line + '; [ "$WINDLASS_ATTEMPT" -gt 1 ] || { echo connection refused >&2; exit 1; }'
    made = []
    for number in range(first, first + BATCH):
        script = fails if number % 50 == 7 else line
        argv = ["sh", "-c", script, str(marks)]
        retry = ("execution",) if number % 50 == 7 else ()
        made.append(JobSpec(task="shell", args={"argv": argv}, retry_on=retry))
    return made


async def submit_all(client: AsyncClient, marks: Path) -> list[int]:
    """Every submission is acknowledged, however often its server is killed under it."""
    ids: list[int] = []
    for first in range(0, JOBS, BATCH):
        while True:
            try:
                done = await client.submit_many(requests(first, marks))
                break
            except Unreachable as error:
                if error.sent:
                    raise  # else nobody listened, so nothing can have happened
        ids += [job.id for job in done]
    return ids


async def count_open(client: AsyncClient) -> int:
    """Jobs that have not ended; as good as endless while no server answers."""
    try:
        return len(await client.jobs(limit=JOBS, state=OPEN))
    except WindlassError:
        return JOBS


async def play(folder: Path, store: str, servers: int) -> None:
    fleet = Fleet(folder, store, servers=servers, seed=servers)
    marks = folder / "marks"
    try:
        await fleet.start_servers()
        for number in range(1, WORKERS + 1):
            await fleet.start_worker(f"worker-{number}")
        async with AsyncClient(fleet.address, fleet.token, reconnect=60) as client:
            submitting = asyncio.create_task(submit_all(client, marks))
            await wreck(fleet, client, submitting)
            ids = await submitting

            async def all_ended() -> bool:
                return await count_open(client) == 0

            await until("all jobs ended", all_ended, LIMIT_S, POLL_S)
            ended = await client.jobs(limit=2 * JOBS)

        async def all_obey_signals() -> bool:
            # A worker that is told to stop before it has started up is ended by the signal.
            return fleet.workers_obey

        await until("all workers started up", all_obey_signals, LIMIT_S, POLL_S)
        assert len(ids) == len(set(ids)) == JOBS
        assert sorted(job.id for job in ended) == sorted(ids)
        assert Counter(job.state for job in ended) == {"completed": JOBS}
        code, said = await fleet.run("verify", "--json")
        assert (code, json.loads(said)) == (0, {"violations": []})
        check_marks(marks, ids)
        assert Counter(name.split("-")[0] for name in fleet.killed) == {
            "server": SERVER_KILLS, "worker": WORKER_KILLS,
        }  # fmt: skip
    except BaseException as error:
        error.add_note(fleet.tails())
        raise
    finally:
        ends = await fleet.stop()
    assert set(ends.values()) == {0}, ends


async def wreck(fleet: Fleet, client: AsyncClient, submitting: "asyncio.Task[list[int]]") -> None:
    """Kill as the work goes on: each time another part of the jobs has ended."""
    kinds = ["server"] * SERVER_KILLS + ["worker"] * WORKER_KILLS
    fleet.chance.shuffle(kinds)
    for number, kind in enumerate(kinds):
        enough = JOBS * (number + 1) // (len(kinds) + 2)

        async def moved_on(enough: int = enough) -> bool:
            if submitting.done():
                submitting.result()
            try:
                done = await client.jobs(limit=enough, state=["completed"])
            except WindlassError:
                return False
            return len(done) >= enough

        await until(f"{enough} jobs completed", moved_on, LIMIT_S, POLL_S)
        await fleet.kill_and_replace(kind)


def check_marks(marks: Path, ids: list[int]) -> None:
    """Every job ran, and no attempt of it twice."""
    ran = Counter(marks.read_text().splitlines())
    assert {int(line.split()[0]) for line in ran} == set(ids)
    assert [line for line, times in ran.items() if times > 1] == []


def test_one_server_on_sqlite(tmp_path: Path) -> None:
    run(play(tmp_path, f"sqlite://{tmp_path}/windlass.db", servers=1))


def test_two_servers_on_postgresql(tmp_path: Path, postgres_dsn: str) -> None:
    run(play(tmp_path, postgres_dsn, servers=2))
