"""A media farm with flaky sources, at default settings: `make bench-sla`.

Two servers on PostgreSQL and four workers run live, default and batch jobs: ffmpeg, GStreamer,
shell and Python. They arrive at a steady rate; in three of a hundred the source or the network
fails at first, and once the source of a row of jobs is down for good: these should fail. On the way
workers and one of the servers are killed. Each queue has a target: how long a job may wait until it
first starts. The wait begins when the job is due, also if a submission before it is held up.
Printed for each queue: how many jobs started within the target *and* ended correctly, beside the
share that completed at all; and which workers were suspected.
"""

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import asyncpg
import imageio_ffmpeg
import msgspec

import windlass
from benchmarks import report
from tests.support.fleet import Fleet
from tests.support.postgres import start_postgres
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import STATE_BY_CODE, State, is_terminal
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import WindlassError

JOBS: Final = 45_000
JOBS_PER_SECOND: Final = 50
FAILS_AT_FIRST: Final = 0.03
GONE: Final = 14  # jobs in a row whose source is down for good
SEED: Final = 3

# A job of each queue should start within so many seconds of its submission.
TARGET_S: Final = {"live": 10, "default": 60, "batch": 600}
GOAL: Final = 0.998

QUEUES: Final = {"live": 0.2, "default": 0.5, "batch": 0.3}
TASKS: Final = {"ffmpeg": 0.03, "gstreamer": 0.02, "shell": 0.15, "python": 0.8}

WORKERS: Final = 4
SLOTS: Final = 4
BATCH_S: Final = 0.2
SOURCE_AWAY_S: Final = 2.0  # shorter than the first pause before a retry
RESTART_S: Final = 1.0
END_S: Final = 600
CLIP_SECONDS: Final = 1
OPEN: Final = [str(state) for state in State if not is_terminal(state)]

# What is killed when: after this share of the jobs was submitted.
KILLS: Final = ((0.2, "worker-1"), (0.4, "server-2"), (0.55, "worker-2"), (0.75, "worker-3"))


@windlass.task
def square(number: int, fails: bool = False) -> int:
    """Returns the square; if it `fails`, the first attempt loses its connection."""
    if fails and windlass.current().attempt == 1:
        raise ConnectionResetError("connection reset by peer")
    return number * number


class Planned(msgspec.Struct, frozen=True):
    """A job to submit, and what it should come to."""

    queue: str
    task: str
    fails: bool
    spec: JobSpec
    number: int
    gone: bool = False  # its source is down for good


class Source:
    """Serves one clip over HTTP; some names are refused for the first seconds, or always."""

    def __init__(self, clip: bytes) -> None:
        self._clip = clip
        self._first_asked: dict[str, float] = {}
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            name = head.split()[1].decode()
            if "gone" in name or ("flaky" in name and self._is_away(name)):
                writer.transport.abort()  # a reset
                return
            start = (
                f"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: {len(self._clip)}"
            )
            writer.write(f"{start}\r\nConnection: close\r\n\r\n".encode())
            if not head.startswith(b"HEAD"):
                writer.write(self._clip)
            await writer.drain()
            writer.close()
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()

    def _is_away(self, name: str) -> bool:
        now = time.monotonic()
        return now < self._first_asked.setdefault(name, now) + SOURCE_AWAY_S


def make_clip(folder: Path) -> bytes:
    """Makes a second of video."""
    path = folder / "clip.mp4"
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-loglevel", "error", "-f", "lavfi", "-i"]
    source = f"testsrc=duration={CLIP_SECONDS}:size=160x120:rate=10"
    # The index comes first, so that a player may read the file from front to back.
    subprocess.run([*command, source, "-movflags", "faststart", str(path)], check=True)
    return path.read_bytes()


def plan(jobs: int, source: str, seed: int = SEED) -> list[Planned]:
    """Draws the jobs, the same for each seed; every kind is in every queue."""
    chance = random.Random(seed)
    made = []
    for number in range(jobs):
        queue = chance.choices(list(QUEUES), list(QUEUES.values()))[0]
        task = chance.choices(list(TASKS), list(TASKS.values()))[0]
        fails = chance.random() < FAILS_AT_FIRST
        if jobs // 2 <= number < jobs // 2 + GONE:
            gone = msgspec.structs.replace(gstreamer(f"{source}/gone-{number}.mp4"), retries=1)
            made.append(Planned("default", "gstreamer", False, gone, number, gone=True))
            continue
        spec = describe(task, queue, number, fails, source)
        made.append(Planned(queue, task, fails, spec, number))
    return made


def gstreamer(clip: str) -> JobSpec:
    pipeline = f"souphttpsrc location={clip} ! filesink location=out.mp4".split()
    return JobSpec(task="gstreamer", args={"pipeline": pipeline, "artifacts": ["out.mp4"]})


def describe(task: str, queue: str, number: int, fails: bool, source: str) -> JobSpec:
    clip = f"{source}/{'flaky' if fails else 'clip'}-{number}.mp4"
    if task == "python":
        return square.options(queue=queue).job(number, fails)
    if task == "shell":  # an exit code says nothing about its cause, so it asks for retries
        argv = ["curl", "--silent", "--fail", "--show-error", "--output", "clip.mp4", clip]
        spec = JobSpec(task="shell", args={"argv": argv, "artifacts": ["clip.mp4"]}, retries=3)
    elif task == "ffmpeg":
        spec = JobSpec(
            task="ffmpeg", args={"inputs": [clip], "output": "out.mp4", "codec": "libx264"}
        )
    else:
        spec = gstreamer(clip)
    return msgspec.structs.replace(spec, queue=queue)


class Farm:
    """The farm, the jobs that were submitted to it, and what was killed."""

    def __init__(self, fleet: Fleet, jobs: Sequence[Planned], rate: float) -> None:
        self._fleet = fleet
        self._jobs = jobs
        self.rate = rate
        self._began_ms = 0.0
        self.ids: dict[int, Planned] = {}

    def due_ms(self, job: Planned) -> float:
        """Returns when the job was to be submitted."""
        return self._began_ms + job.number / self.rate * 1000

    async def run(self) -> None:
        """Submits all jobs at the rate, kills on the way, and waits until every job has ended."""
        async with AsyncClient(self._fleet.address, self._fleet.token, reconnect=60) as client:
            self._began_ms = time.time() * 1000
            began = time.monotonic()
            kills = list(KILLS)
            killing = set()
            sent = 0
            while sent < len(self._jobs):
                due = min(len(self._jobs), int((time.monotonic() - began) * self.rate))
                if due > sent:
                    await self._submit(client, self._jobs[sent:due])
                    sent = due
                if kills and sent >= kills[0][0] * len(self._jobs):
                    killing.add(asyncio.create_task(self._kill(kills.pop(0)[1])))
                await asyncio.sleep(BATCH_S)
            await asyncio.gather(*killing)
            await self._all_ended(client)

    async def _submit(self, client: AsyncClient, jobs: Sequence[Planned]) -> None:
        for task in TASKS:
            part = [job for job in jobs if job.task == task]
            if part:
                handles = await client.submit_many([job.spec for job in part])
                self.ids |= {handle.id: job for handle, job in zip(handles, part, strict=True)}

    async def _kill(self, name: str) -> None:
        """Kills a server or worker and starts it again; the last worker is replaced instead."""
        await self._fleet.kill(name)
        await asyncio.sleep(RESTART_S)
        if name.startswith("server"):
            await self._fleet.start_server(name)
        else:
            await self._fleet.start_worker(name if name != KILLS[-1][1] else "worker-new")

    async def _all_ended(self, client: AsyncClient) -> None:
        async with asyncio.timeout(END_S):
            while True:
                try:
                    if not await client.jobs(limit=1, state=OPEN):
                        return
                except WindlassError as error:
                    print(f"asked again: {error}", file=sys.stderr)
                await asyncio.sleep(1)


class Ended(msgspec.Struct, frozen=True):
    """How a job went: how long from when it was due to its first start, and how it ended."""

    queue: str
    waited_s: float | None
    is_correct: bool
    has_completed: bool
    due_s: float  # after the first job was due
    outcome: str  # the kind of job, and how and why it ended


class Played(msgspec.Struct, frozen=True):
    """How all jobs went, and what the log says of suspected workers."""

    ended: list[Ended]
    suspected: list[str]


FIRST_STARTS: Final = """
SELECT j.id, j.state, j.failure, j.reason, j.attempt, j.result,
       least(j.started_at, min(a.started_at)) AS started_at,
       (SELECT count(*) FROM artifacts f WHERE f.job = j.id AND f.attempt = j.attempt) AS files
FROM jobs j LEFT JOIN attempts a ON a.job = j.id
GROUP BY j.id
"""


SUSPECTED: Final = """
SELECT reason FROM events WHERE kind = $1 AND data LIKE '%"status":"probation"%' ORDER BY seq
"""


async def look(dsn: str, farm: Farm) -> Played:
    """Reads how each acknowledged job went; one that is not there has not ended correctly.

    Raises `AssertionError` if there are jobs that nobody submitted, or twice.
    """
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "windlass"})
    try:
        rows = {row["id"]: row for row in await connection.fetch(FIRST_STARTS)}
        said = await connection.fetch(SUSPECTED, int(EventKind.WORKER))
    finally:
        await connection.close()
    unknown = sorted(rows.keys() - farm.ids.keys())
    assert not unknown, f"{len(unknown)} jobs that nobody submitted, such as {unknown[:5]}"
    found = []
    for job, planned in farm.ids.items():
        row = rows.get(job)
        completed = row is not None and row["state"] == State.COMPLETED.code
        started = row and row["started_at"]
        waited = max(0.0, started - farm.due_ms(planned)) / 1000 if started else None
        correct = row is not None and _is_right(planned, row)
        outcome = "absent" if row is None else _outcome(planned, row)
        due_s = planned.number / farm.rate
        found.append(Ended(planned.queue, waited, correct, completed, due_s, outcome))
    return Played(found, [row["reason"] for row in said])


def _outcome(planned: Planned, row: asyncpg.Record) -> str:
    kind = f"{planned.task}{', fails at first' if planned.fails else ''}"
    state = STATE_BY_CODE[row["state"]]
    return f"{kind}: {state} after {row['attempt']} attempts: {str(row['reason'])[:80]}"


def _is_right(planned: Planned, row: asyncpg.Record) -> bool:
    if planned.gone:
        network = FailureClass.NETWORK.code
        return bool(row["state"] == State.FAILED.code and row["failure"] == network)
    if row["state"] != State.COMPLETED.code:
        return False
    if planned.task != "python":
        return bool(row["files"] == 1)
    result: int = msgspec.json.decode(row["result"])
    return result == planned.number**2


def lines(ended: Sequence[Ended], target: Mapping[str, float]) -> list[str]:
    """One line for each queue, and one for all."""
    heads = f"{'queue':8} {'jobs':>7} {'target':>7} {'in time, correct':>16} {'completed':>10}"
    text = [f"{heads}  p99 wait"]
    for queue in (*TARGET_S, "all"):
        part = [job for job in ended if queue in (job.queue, "all")]
        if not part:
            continue
        waits = sorted(job.waited_s for job in part if job.waited_s is not None)
        p99 = f"{waits[int(len(waits) * 0.99)]:.1f} s" if waits else "–"
        limit = f"{target[queue]:g} s" if queue in target else ""
        share = sum(is_good(job, target) for job in part) / len(part)
        plain = sum(job.has_completed for job in part) / len(part)
        text.append(f"{queue:8} {len(part):7,} {limit:>7} {share:16.3%} {plain:10.3%}  {p99}")
    return text


def is_good(job: Ended, target: Mapping[str, float]) -> bool:
    return job.is_correct and job.waited_s is not None and job.waited_s <= target[job.queue]


def misses(ended: Sequence[Ended], target: Mapping[str, float]) -> list[str]:
    """Lines about jobs that started late, by when they were due, and that ended wrongly, by how."""
    late = Counter(
        (job.queue, int(job.due_s // 10) * 10)
        for job in ended
        if job.is_correct and not is_good(job, target)
    )
    wrong = Counter((job.queue, job.outcome) for job in ended if not job.is_correct)
    return [
        *(f"{count} late in {queue}, due {at} s on" for (queue, at), count in sorted(late.items())),
        *(f"{count} wrong in {queue}: {how}" for (queue, how), count in sorted(wrong.items())),
    ]


async def play(
    folder: Path, dsn: str, jobs: int, rate: float, isolation: str, times: Sequence[str] = ()
) -> Played:
    """Runs the whole farm once; `times` are flags of its servers."""
    source = Source(make_clip(folder))
    address = await source.start()
    fleet = Fleet(folder, dsn, servers=2, times=times, slots=SLOTS, isolation=isolation)
    try:
        await fleet.start_servers()
        for number in range(1, WORKERS + 1):
            await fleet.start_worker(f"worker-{number}")
        farm = Farm(fleet, plan(jobs, address), rate)
        await farm.run()
        return await look(dsn, farm)
    except BaseException as error:
        error.add_note(fleet.tails())
        raise
    finally:
        await fleet.stop()
        await source.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.sla", description=__doc__)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--rate", type=float, default=JOBS_PER_SECOND, help="jobs a second")
    parser.add_argument("--isolation", default="auto", help="of the workers, as windlass takes it")
    given = parser.parse_args()
    server = start_postgres(durable=True)
    report.RESULTS.mkdir(exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=report.RESULTS) as folder:
            began = time.monotonic()
            dsn = server.create_database()
            played = asyncio.run(play(Path(folder), dsn, given.jobs, given.rate, given.isolation))
    finally:
        server.stop()
    ended = played.ended
    print(f"{len(ended):,} jobs in {time.monotonic() - began:.0f} s, {given.rate:g} a second, "
          f"killed: {', '.join(name for _, name in KILLS)}")  # fmt: skip
    print("\n".join(lines(ended, TARGET_S)))
    share = sum(is_good(job, TARGET_S) for job in ended) / len(ended)
    print(f"goal: {GOAL:.1%} in time and correct: {'met' if share >= GOAL else 'MISSED'}")
    print("\n".join(played.suspected) or "no worker was suspected")
    print("\n".join(misses(ended, TARGET_S)))
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
