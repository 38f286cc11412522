"""SQLite, *same rows*: bare SQL that writes exactly the rows the engine writes.

The statements are the fastest known for each row (docs/decisions/003): what stands in a
table is never bound again, what must be bound goes in rows of 25. As the engine does, it
submits in one transaction and finishes and claims in the next; it reads what it fences by.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.drive import RESULT_BYTES
from benchmarks.measure import Lap, Watch
from windlass.domain.lifecycle.states import State
from windlass.ports.clock import Clock
from windlass.store.sqlite.connection import Checkpoints, open_checkpointer, open_writer
from windlass.store.sqlite.statements import QUERIES, BulkInsert, integers

QUEUED = State.QUEUED.code
RUNNING = State.RUNNING.code
COMPLETED = State.COMPLETED.code
TIMEOUTS = (1_800_000, None)  # while running, and without activity: the defaults
SLACK_MS = 10_000 + 30_000  # the grace of a stopped process and one heartbeat

INSERT_JOBS = BulkInsert(QUERIES["insert_jobs"])
INSERT_OUTCOMES = BulkInsert(QUERIES["end_jobs"])
INSERT_READY = """
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id, excluded)
SELECT shape, rank, id, 0, workflow, limit_id, NULL FROM jobs WHERE id BETWEEN ? AND ?
"""
ONE_EVENT = """
INSERT INTO events (at, kind, job, attempt, worker, incarnation, from_state, to_state)
SELECT ?1, 1, value, ?2, ?3, ?4, ?5, ?6 FROM carray(?7)
"""
TWO_EVENTS = """
INSERT INTO events (at, kind, job, attempt, worker, incarnation, from_state, to_state)
SELECT ?1, 1, value, ?2, ?3, ?4, step.column1, step.column2
FROM carray(?5) CROSS JOIN (VALUES (2, 3), (3, 4)) AS step
"""
PEEK = """
SELECT r.rank, r.job, r.attempt, j.timeout_ms, j.idle_ms, j.spec
FROM ready AS r CROSS JOIN jobs AS j ON j.id = r.job
WHERE r.shape = ? ORDER BY r.rank, r.job LIMIT ?
"""
REMOVE = "DELETE FROM ready WHERE shape = ? AND (rank, job) <= (?, ?)"
FENCE = """
SELECT l.job, l.attempt, l.worker, l.incarnation, l.assigned_at, l.started_at, j.flags
FROM carray(?) AS x CROSS JOIN leases AS l ON l.job = x.value
CROSS JOIN jobs AS j ON j.id = l.job
"""


class RawStore:
    """The writer's connection and the few numbers that an engine would remember."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._writer = open_writer(path)
        self._mover = open_checkpointer(path)
        self._checkpoints = Checkpoints(self._writer, self._mover)
        self._execute = self._writer.execute
        self._clock = clock
        given: list[Any] = self._writer.execute(QUERIES["sequences"]).fetchall()
        self._sequences: dict[str, int] = dict(given)
        self._server: str = self._row("SELECT server FROM counters LIMIT 1")[0]
        self._who: tuple[int, int] = self._row("SELECT id, incarnation FROM workers")
        self._shape: int = self._row("SELECT id FROM shapes")[0]
        self._level: int = self._row("SELECT age_from - rank FROM jobs LIMIT 1")[0]
        self._seq: int = self._row("SELECT seq FROM workers")[0]
        self._last_lease = self._sequences["lease"]

    def close(self) -> None:
        self._mover.close()
        self._writer.close()

    def submit(self, bodies: Sequence[bytes]) -> None:
        """Write jobs, their places in the queue, an event each and the depth."""
        now, execute = self._clock.now_ms(), self._execute
        execute("BEGIN IMMEDIATE")
        first = self._sequences["job"] + 1
        last = self._sequences["job"] = self._sequences["job"] + len(bodies)
        shape, rank, ids = self._shape, now - self._level, range(first, last + 1)
        rows = [
            (job, shape, None, 0, rank, 0, 0, now, now, None, *TIMEOUTS, None, body)
            for job, body in zip(ids, bodies, strict=True)
        ]
        INSERT_JOBS.run(self._writer, rows)
        execute(INSERT_READY, (first, last))
        execute(QUERIES["bump_counters"], (self._server, "depth:default", len(bodies)))
        execute(ONE_EVENT, (now, 0, 0, 0, 0, QUEUED, integers(ids)))
        execute(QUERIES["save_sequence"], ("job", last))
        self._commit()

    def sync(self, finished: Sequence[int], want: int) -> list[int]:
        """Finish these jobs and claim others, in one transaction."""
        now, execute = self._clock.now_ms(), self._execute
        execute("BEGIN IMMEDIATE")
        if finished:
            self._finish(finished, now)
        claimed = self._claim(want, now) if want else []
        self._seq += 1
        execute(QUERIES["beat_workers"], (self._who[0], self._seq, now, self._last_lease))
        self._commit()
        return claimed

    def _finish(self, finished: Sequence[int], now: int) -> None:
        ids = integers(finished)
        held: list[Any] = self._execute(FENCE, (ids,)).fetchall()
        if len(held) != len(finished):
            raise RuntimeError(f"expected {len(finished)} leases, got {len(held)}")
        rows = [
            (job, COMPLETED, flags, attempt, 0, 0, worker, incarnation, assigned_at, started_at,
             now, 0, None, None, None, RESULT_BYTES)
            for job, attempt, worker, incarnation, assigned_at, started_at, flags in held
            if (worker, incarnation) == self._who and attempt == 1
        ]  # fmt: skip
        INSERT_OUTCOMES.run(self._writer, rows)
        self._execute(ONE_EVENT, (now, 1, *self._who, RUNNING, COMPLETED, ids))
        self._execute(QUERIES["drop_leases"], (ids,))

    def _claim(self, want: int, now: int) -> list[int]:
        execute = self._execute
        rows: list[Any] = execute(PEEK, (self._shape, want)).fetchall()
        execute(REMOVE, (self._shape, rows[-1][0], rows[-1][1]))
        claimed = [row[1] for row in rows]
        ids = integers(claimed)
        times = (now, now, now + SLACK_MS)
        execute(QUERIES["lease_to"], (self._last_lease, 1, *self._who, None, RUNNING, *times, ids))
        execute(TWO_EVENTS, (now, 1, *self._who, ids))
        execute(QUERIES["bump_counters"], (self._server, "depth:default", -len(rows)))
        self._last_lease += len(rows)
        execute(QUERIES["save_sequence"], ("lease", self._last_lease))
        return claimed

    def _commit(self) -> None:
        self._execute("COMMIT")
        if self._checkpoints.is_wanted():
            self._checkpoints.run()

    def _row(self, query: str) -> Any:
        return self._writer.execute(query).fetchall()[0]


def run(path: Path, batches: Sequence[Sequence[bytes]], clock: Clock) -> Lap:
    """Take each batch through submit, claim and completion, as `drive.cycle` does."""
    store = RawStore(path, clock)
    watch = Watch()
    jobs, held = 0, list[int]()
    for batch in batches:
        store.submit(batch)
        held = store.sync(held, len(batch))
        jobs += len(held)
    store.sync(held, 0)
    lap = watch.lap(jobs)
    store.close()
    return lap
