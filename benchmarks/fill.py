"""Fill a store with millions of jobs by a few set-based statements.

What stands there afterwards is what the engine would have written: jobs, their places,
outcomes or leases, the events so far, the depth of the queue and the numbers given out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import msgspec

from benchmarks import drive
from windlass.domain.matching.clauses import canonical_requires
from windlass.domain.matching.shapes import Shape, shape_digest

TIMEOUT_MS = 1_800_000
LEVEL_MS = 50 * 300_000  # the default queue's weight times the interval of aging
SPACING_MS = 10  # between two jobs, and how much earlier than now the newest came
WORKER = 1
INCARNATION = 1

QUEUED, RUNNING, FINISHED = "queued", "running", "finished"

JOB_COLUMNS = (
    "id, shape, workflow, flags, rank, base, adjustment, age_from, created_at, limit_id, "
    "timeout_ms, idle_ms, supersedes, spec"
)
READY_COLUMNS = "shape, rank, job, attempt, workflow, limit_id"
LEASE_COLUMNS = (
    "job, attempt, lease, worker, incarnation, state, assigned_at, started_at, "
    "deadline_at, timeout_ms, idle_ms, limit_id"
)
END_COLUMNS = (
    "state, attempt, worker, incarnation, assigned_at, started_at, finished_at, failure, result"
)

# Attempt, worker, incarnation, from, to.
_QUEUED = "(0, 0, 0, 0, 2)"
_RUNNING = f"{_QUEUED}, (1, {WORKER}, {INCARNATION}, 2, 3), (1, {WORKER}, {INCARNATION}, 3, 4)"
STEPS = {
    QUEUED: _QUEUED,
    RUNNING: _RUNNING,
    FINISHED: f"{_RUNNING}, (1, {WORKER}, {INCARNATION}, 4, 8)",
}


class Group(msgspec.Struct, frozen=True):
    """Jobs of one kind, in the order of their ranks, spread evenly over `shapes`."""

    jobs: int
    shapes: Sequence[Shape]
    state: str = QUEUED


def plain_shape() -> Shape:
    """The shape of `drive.specs`."""
    return Shape("default", "default", drive.TASK)


def zone_shapes(count: int) -> list[Shape]:
    """Shapes that differ in what they require: each runs in its own zone."""
    return [
        Shape("default", "default", drive.TASK, canonical_requires([f"zone=={n}"]))
        for n in range(count)
    ]


def sized_shape(cpus: int) -> Shape:
    """A shape whose jobs take so many processors, and as many GiB."""
    taken = (("cpus", cpus), ("memory", cpus * 2**30))
    return Shape("default", "default", drive.TASK, resources=taken)


def task_shapes(count: int) -> list[Shape]:
    """Shapes that differ in their task, which every worker can run."""
    return [Shape("default", "default", f"{drive.TASK}-{n}") for n in range(count)]


class Part(msgspec.Struct, frozen=True):
    """A group with its numbers: jobs `first` to `last`, shapes from `shape` on."""

    first: int
    last: int
    shape: int
    shapes: int
    state: str


class Plan:
    """Groups laid out one after the other, for a statement to fill in."""

    def __init__(self, groups: Sequence[Group], now: int) -> None:
        self.now = now
        self.shapes: list[tuple[int, str, bytes]] = []
        self.parts: list[Part] = []
        job = 0
        firsts: dict[tuple[str, ...], int] = {}  # groups may have the same shapes
        for group in groups:
            digests = tuple(map(shape_digest, group.shapes))
            if digests not in firsts:
                firsts[digests] = len(self.shapes) + 1
                numbers = range(firsts[digests], firsts[digests] + len(digests))
                bodies = map(msgspec.json.encode, group.shapes)
                self.shapes += zip(numbers, digests, bodies, strict=True)
            shape = firsts[digests]
            self.parts.append(
                Part(job + 1, job + group.jobs, shape, len(group.shapes), group.state)
            )
            job += group.jobs
        self.jobs = job
        # Job n was created so long after this that the last one came just before now.
        self.start = now - (job + 1) * SPACING_MS

    @property
    def depth(self) -> int:
        return sum(p.last - p.first + 1 for p in self.parts if p.state == QUEUED)

    @property
    def leases(self) -> int:
        return sum(p.last - p.first + 1 for p in self.parts if p.state == RUNNING)

    def statements(self, part: Part, series: str, names: "Names") -> list[str]:
        """Everything of one part, as SQL with the numbers written out."""
        at = f"({self.start} + n * {SPACING_MS})"
        shape = f"({part.shape} + n % {part.shapes})"
        none = names.none
        columns = JOB_COLUMNS
        values = (
            f"n, {shape}, {none}, 0, {at} - {LEVEL_MS}, 0, 0, {at}, {at}, {none}, {TIMEOUT_MS}, "
            f"{none}, {none}, {names.spec}"
        )
        places: list[str] = []
        if part.state == QUEUED:
            ready = f"{shape}, {at} - {LEVEL_MS}, n, 0, {none}, {none}"
            places.append(f"INSERT INTO ready ({READY_COLUMNS}) SELECT {ready} FROM {series}")
        elif part.state == RUNNING:
            lease = (
                f"n, 1, n - {part.first - 1}, {WORKER}, {INCARNATION}, 4, {at}, {at}, "
                f"{self.now + TIMEOUT_MS}, {TIMEOUT_MS}, {none}, {none}"
            )
            places.append(f"INSERT INTO leases ({LEASE_COLUMNS}) SELECT {lease} FROM {series}")
        else:
            end = f"8, 1, {WORKER}, {INCARNATION}, {at}, {at}, {at}, 0, {names.result}"
            if names.outcomes:
                places.append(
                    f"INSERT INTO outcomes ({END_COLUMNS}, job, flags, failed, lost) "
                    f"SELECT {end}, n, 0, 0, 0 FROM {series}"
                )
            else:
                columns, values = f"{columns}, {END_COLUMNS}", f"{values}, {end}"
        jobs = f"INSERT INTO jobs ({columns}) SELECT {values} FROM {series}"
        return [jobs, _events(names, series, at, STEPS[part.state]), *places]


def _events(names: "Names", series: str, at: str, steps: str) -> str:
    """All events of a job together, so that indexes only ever grow at their end."""
    return (
        f"INSERT INTO events (at, kind, job, attempt, worker, incarnation, {names.source}, "
        f"{names.to}) SELECT {at}, 1, n, step.column1, nullif(step.column2, {names.absent}), "
        f"nullif(step.column3, {names.absent}), step.column4, step.column5 "
        f"FROM {series} CROSS JOIN (VALUES {steps}) AS step"
    )


class Names:
    """What SQLite calls things."""

    none = "NULL"
    absent = "NULL"  # what a 0 is compared with to become NULL: here it never does
    source = "from_state"
    to = "to_state"
    spec = """CAST('{"task":"noop","args":{"n":' || n || '}}' AS BLOB)"""
    result = f"CAST('{drive.RESULT_BYTES.decode()}' AS BLOB)"
    outcomes = True  # the end of a job is a row of its own


class PostgresNames(Names):
    """What PostgreSQL calls them."""

    none = "NULL::bigint"
    absent = "0"
    source = '"from"'
    to = '"to"'
    spec = """convert_to('{"task":"noop","args":{"n":' || n || '}}', 'UTF8')"""
    result = f"convert_to('{drive.RESULT_BYTES.decode()}', 'UTF8')"
    outcomes = False


def fill_sqlite(path: Path, groups: Sequence[Group], now: int) -> None:
    """Fill a file that a store has made and closed; the worker is enrolled later."""
    plan = Plan(groups, now)
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "off")  # or everything would be written twice
    connection.pragma("synchronous", "off")
    connection.pragma("cache_size", -512 * 1024)
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO shapes (id, digest, body) VALUES (?, ?, ?)", plan.shapes)
    for part in plan.parts:
        series = (
            f"(WITH RECURSIVE s (n) AS (VALUES ({part.first}) UNION ALL "
            f"SELECT n + 1 FROM s WHERE n < {part.last}) SELECT n FROM s)"
        )
        for statement in plan.statements(part, series, Names()):
            connection.execute(statement)
    given = [("job", plan.jobs), ("shape", len(plan.shapes)), ("lease", plan.leases)]
    connection.executemany("INSERT OR REPLACE INTO sequences VALUES (?, ?)", given)
    connection.execute("INSERT INTO counters VALUES ('s1', 'depth:default', ?)", (plan.depth,))
    connection.execute("COMMIT")
    connection.close()


async def fill_postgres(
    connection: "asyncpg.Connection[Any]", groups: Sequence[Group], now: int
) -> None:
    """Fill an upgraded, empty database."""
    plan = Plan(groups, now)
    await connection.execute("SET synchronous_commit = off; SET enable_seqscan = on")
    await connection.copy_records_to_table("shapes", records=plan.shapes, schema_name="windlass")
    for part in plan.parts:
        series = f"generate_series({part.first}::bigint, {part.last}::bigint) AS s (n)"
        for statement in plan.statements(part, series, PostgresNames()):
            await connection.execute(statement, timeout=1_800)
    given = [
        ("job_ids", plan.jobs),
        ("shape_ids", len(plan.shapes)),
        ("lease_numbers", plan.leases),
    ]
    for name, value in given:
        if value:
            await connection.execute(f"SELECT setval('{name}', {value})")
    await connection.execute(
        "INSERT INTO counters (name, value) VALUES ('depth:default', $1)",
        plan.depth,
    )
    for table in ("jobs", "ready", "leases", "events", "shapes"):
        await connection.execute(f"VACUUM (ANALYZE) {table}", timeout=1_800)
    await connection.execute("CHECKPOINT", timeout=600)
