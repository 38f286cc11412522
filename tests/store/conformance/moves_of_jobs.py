"""Moves of the differential test: jobs and the places they stand in."""

from collections.abc import Sequence

from tests.store.conformance.moves import JOBS, LIMITS, RANKS, SHAPES, TIMES, Dice, Maker, Move
from tests.store.conformance.rows import (
    COMPLETED,
    FAILED,
    QUEUED,
    RETRYING,
    attempt,
    job_end,
    new_job,
)
from windlass.domain.rows.records import Due, JobTry, KeyRow, Ticket, Wait
from windlass.domain.values.ids import AttemptNo, JobId
from windlass.store.sql.places import Probe
from windlass.store.sql.snapshot import Snapshot


def open_jobs(held: Snapshot) -> list[int]:
    return [row.facts.id for row in held.jobs if not row.facts.state]


def absent(place: Sequence[Ticket | Due]) -> list[int]:
    """Jobs that do not stand in this place: none stands there twice."""
    there = [row.job for row in place]
    return [job for job in JOBS if job not in there]


def insert_jobs(dice: Dice, held: Snapshot) -> Move:
    rows = [
        new_job(
            job,
            workflow=dice.one([None, None, 2]),
            rank=dice.one(RANKS),
            timeout_ms=dice.number(0, 9),
            idle_ms=dice.number(0, 9),
            spec=b'{"n":%d}' % job,
        )
        for job in dice.some(JOBS)
    ]
    return Move("jobs", "insert", (rows,))


def note_tries(dice: Dice, held: Snapshot) -> Move:
    rows = [
        JobTry(JobId(job), AttemptNo(dice.number(1, 3)), dice.number(0, 3), 1, 2, 3, dice.text())
        for job in dice.some(open_jobs(held))
    ]
    return Move("jobs", "note_tries", (rows,))


def end_jobs(dice: Dice, held: Snapshot) -> Move:
    rows = [
        job_end(
            job,
            state=dice.one([COMPLETED, FAILED]),
            exit_code=dice.one([None, 0, -9]),
            message=dice.text(),
            result=dice.one([None, b"", b"[1]"]),
        )
        for job in dice.some(open_jobs(held))
    ]
    return Move("jobs", "end", (rows,))


def record_attempts(dice: Dice, held: Snapshot) -> Move:
    rows = [attempt(job, dice.number(1, 3), message=dice.text()) for job in dice.some(JOBS)]
    return Move("jobs", "record_attempts", (rows,))


def set_priority(dice: Dice, held: Snapshot) -> Move:
    place = (dice.number(-2, 2), dice.one(TIMES), dice.one(RANKS), dice.number(0, 15))
    numbers = (dice.one(JOBS), *place)
    return Move("jobs", "set_priority", numbers)


def set_timeouts(dice: Dice, held: Snapshot) -> Move:
    rows = [(job, dice.one([None, 1, 2**40])) for job in dice.some(JOBS)]
    return Move("jobs", "set_timeouts", (rows,))


def supersede(dice: Dice, held: Snapshot) -> Move:
    pairs = [(old, old + 1_000) for old in dice.some(JOBS)]
    return Move("jobs", "set_superseded", (pairs,))


def add_dependents(dice: Dice, held: Snapshot) -> Move:
    jobs = dice.some(JOBS)
    edges = {job: range(dice.one([0, 1, 3, 400, 999, 1_000, 1_001, 2_100])) for job in jobs}
    return Move("jobs", "add_dependents", (edges,))


def claim_keys(dice: Dice, held: Snapshot) -> Move:
    names = dice.some(["a", "A", "ä", "b"])
    rows = [
        KeyRow("team", name, dice.one(JOBS), dice.one("xy"), dice.one([None, ((1, 2), (5, 5))]))
        for name in names
    ]
    return Move("jobs", "claim_keys", (rows,))


def retake_keys(dice: Dice, held: Snapshot) -> Move:
    names = dice.some(["a", "A", "ä", "b"])
    rows = [KeyRow("team", name, dice.one(JOBS), dice.one("xy")) for name in names]
    return Move("jobs", "retake_keys", (rows, [dice.one(JOBS) for _ in rows]))


def ask_jobs(dice: Dice, held: Snapshot) -> Move:
    method = dice.one(["read", "lock", "share", "specs", "results", "attempts"])
    return Move("jobs", method, (dice.some(JOBS),))


def ask_dependents(dice: Dice, held: Snapshot) -> Move:
    return Move("jobs", "dependents", (dice.some(JOBS), dice.number(0, 3)))


def add_ready(dice: Dice, held: Snapshot) -> Move:
    jobs = dice.some(absent(held.ready))
    return Move("places", "add_ready", ([dice.ticket(job) for job in jobs],))


def add_parked(dice: Dice, held: Snapshot) -> Move:
    jobs = dice.some(absent(held.parked))
    places = [dice.ticket(job)._replace(limit=dice.one(LIMITS)) for job in jobs]
    return Move("places", "add_parked", (places,))


def add_waits(dice: Dice, held: Snapshot) -> Move:
    rows = [
        Wait(JobId(job), dice.number(1, 3), dice.number(0, 1), 5, dice.one(TIMES), dice.ticket(job))
        for job in dice.some(JOBS)
    ]
    return Move("places", "add_waits", (rows,))


def add_due(dice: Dice, held: Snapshot) -> Move:
    jobs = dice.some(absent(held.due))
    rows = [
        Due(dice.one(TIMES), JobId(job), dice.one([QUEUED, RETRYING]), dice.ticket(job))
        for job in jobs
    ]
    return Move("places", "add_due", (rows,))


def meet(dice: Dice, held: Snapshot) -> Move:
    return Move("places", "meet", (dict.fromkeys(dice.some(JOBS), 1), dice.one([True, False])))


def take_by_id(dice: Dice, held: Snapshot) -> Move:
    method = dice.one(["take_waits", "take_due", "waiting"])
    return Move("places", method, (dice.some(JOBS),))


def take_ready(dice: Dice, held: Snapshot) -> Move:
    return Move("places", "take_ready", (dice.facts(held.ready),))


def take_parked(dice: Dice, held: Snapshot) -> Move:
    wanted = [fact for fact in dice.facts(held.parked) if fact.limit]
    return Move("places", "take_parked", (wanted,))


def unpark(dice: Dice, held: Snapshot) -> Move:
    return Move("places", "unpark", (dice.some(held.parked),))


def park(dice: Dice, held: Snapshot) -> Move:
    limited = [place for place in held.ready if place.limit]
    return Move("places", "park", (dice.some(limited),))


def pull_due(dice: Dice, held: Snapshot) -> Move:
    return Move("places", "pull_due", (dice.one(TIMES), dice.number(0, 3)))


def peek(dice: Dice, held: Snapshot) -> Move:
    shapes = dice.some(SHAPES)
    probes = [Probe(s, dice.one(RANKS), dice.number(0, 9), dice.number(0, 4)) for s in shapes]
    return Move("places", "peek", (probes,))


def ask_places(dice: Dice, held: Snapshot) -> Move:
    return Move("places", dice.one(["next_due", "heads"]), ())


def count_ready(dice: Dice, held: Snapshot) -> Move:
    return Move("places", "count_ready", (dice.one(LIMITS), dice.one(SHAPES)))


def best_parked(dice: Dice, held: Snapshot) -> Move:
    return Move("places", "best_parked", (dice.one(LIMITS), dice.number(1, 3)))


# These may fail, and may share a transaction with others of their kind.
MOVES: list[Maker] = [
    insert_jobs,
    note_tries,
    record_attempts,
    set_priority,
    set_timeouts,
    add_dependents,
    claim_keys,
    retake_keys,
    ask_jobs,
    ask_dependents,
    add_ready,
    add_parked,
    add_waits,
    add_due,
    meet,
    take_by_id,
    take_ready,
    take_parked,
    unpark,
    pull_due,
    peek,
    ask_places,
    count_ready,
    best_parked,
]

# These rely on what was held when the transaction began.
LONE_MOVES: list[Maker] = [end_jobs, supersede, park]

# These give the others something to work on.
OPENING: list[Maker] = [insert_jobs, add_ready, add_parked, add_waits, add_due, claim_keys] * 3
