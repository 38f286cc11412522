"""Moves of the differential test: leases, workers, workflows, limits, catalog and log."""

from tests.store.conformance.moves import JOBS, RANKS, TIMES, WORKERS, Dice, Maker, Move
from tests.store.conformance.rows import (
    ASSIGNED,
    CANCELING,
    QUEUED,
    RUNNING,
    TIMED_OUT,
    cascade,
    completion,
    event,
    grant,
    new_job,
    worker,
    workflow,
    workflow_cascade,
)
from windlass.domain.rows.events import Moves
from windlass.domain.rows.records import QueueRow, RateRow, Reservation
from windlass.domain.values.ids import JobId, ShapeId, WorkerId
from windlass.store.sql.snapshot import Snapshot


def grant_jobs(dice: Dice, held: Snapshot) -> Move:
    leased = [row.job for row in held.leases]
    submitted = [row.facts.id for row in held.jobs]
    free = {p.job: p for p in held.ready if p.job in submitted and p.job not in leased}
    grants = [
        grant(place, dice.one(WORKERS), dice.number(1, 3), dice.number(1, 9))
        for place in dice.some(list(free.values()))
    ]
    return Move("leases", "grant", (grants, dice.one([ASSIGNED, RUNNING]), dice.one(TIMES), 3))


def move_leases(dice: Dice, held: Snapshot) -> Move:
    rows = [(job, dice.one(TIMES), dice.one([None, *TIMES])) for job in dice.some(JOBS)]
    return Move("leases", dice.one(["start", "touch", "allow"]), (rows,))


def mark(dice: Dice, held: Snapshot) -> Move:
    return Move("leases", "mark", (dice.some(JOBS), dice.one([CANCELING, TIMED_OUT]), "why"))


def suspect(dice: Dice, held: Snapshot) -> Move:
    return Move("leases", "suspect", (dice.some(JOBS), dice.number(0, 2)))


def by_job(dice: Dice, held: Snapshot) -> Move:
    return Move("leases", dice.one(["lock", "drop"]), (dice.some(JOBS),))


def by_worker(dice: Dice, held: Snapshot) -> Move:
    return Move("leases", dice.one(["of_workers", "count", "marked"]), (dice.some(WORKERS),))


def overdue(dice: Dice, held: Snapshot) -> Move:
    return Move("leases", "overdue", (dice.one(TIMES), dice.number(1, 4)))


def orphans(dice: Dice, held: Snapshot) -> Move:
    return Move("leases", "orphans", (dice.number(1, 4),))


def enrol(dice: Dice, held: Snapshot) -> Move:
    taken = [row.name for row in held.workers]
    name = next(name for name in map(str, range(100)) if name not in taken)
    row = worker(name, incarnation=dice.number(1, 3), last_seen=dice.one(TIMES))
    return Move("workers", "insert", (row,))


def update_workers(dice: Dice, held: Snapshot) -> Move:
    rows = [
        row._replace(status=dice.number(1, 6), reason=dice.text(), incarnation=dice.number(1, 3))
        for row in dice.some(held.workers)
    ]
    return Move("workers", "update", (rows,))


def beat(dice: Dice, held: Snapshot) -> Move:
    rows = [(number, dice.number(1, 9), dice.one(TIMES), 4) for number in dice.some(WORKERS)]
    return Move("workers", "beat", (rows,))


def ask_workers(dice: Dice, held: Snapshot) -> Move:
    return dice.one(
        [
            Move("workers", "lock", (dice.some(WORKERS),)),
            Move("workers", "lock_name", (dice.one("012"),)),
            Move("workers", "read", (dice.some(WORKERS),)),
            Move("workers", "read_name", (dice.one("012"),)),
            Move("workers", "all", ()),
            Move("workers", "silent_since", (dice.one(TIMES), dice.some([1, 2, 3, 4]))),
            Move("workers", "remove", (dice.one(WORKERS),)),
        ]
    )


def insert_workflows(dice: Dice, held: Snapshot) -> Move:
    return Move("workflows", "insert", ([workflow(n) for n in dice.some(range(1, 5))],))


def change_workflows(dice: Dice, held: Snapshot) -> Move:
    some = dice.some(range(1, 5))
    deltas = {n: {state: dice.number(-2, 2) for state in dice.some(range(13))} for n in some}
    deltas = {n: changes for n, changes in deltas.items() if changes}
    states = [(n, dice.number(1, 6), dice.number(1, 3), dice.one(TIMES)) for n in some]
    return dice.one(
        [
            Move("workflows", "bump", (deltas,)),
            Move("workflows", "set_state", (states,)),
            Move("workflows", "lock", (some,)),
        ]
    )


def add_cascades(dice: Dice, held: Snapshot) -> Move:
    rows = [cascade(job, kind=dice.number(1, 2), reason=dice.text()) for job in dice.some(JOBS)]
    rows += [workflow_cascade(number) for number in dice.some([1, 2, 3])]
    return Move("workflows", "add_cascades", (rows,))


def work_cascades(dice: Dice, held: Snapshot) -> Move:
    return dice.one(
        [
            Move("workflows", "pull_cascade", ()),
            Move("workflows", "advance_cascade", (dice.number(1, 4), dice.one([None, 0, 2]))),
            Move("workflows", "cascades_of", (dice.some(JOBS), dice.some([1, 2, 3]))),
        ]
    )


def intern_limits(dice: Dice, held: Snapshot) -> Move:
    rows = [("team", key, dice.number(1, 5)) for key in sorted(dice.some("abcd"))]
    return Move("limits", "intern", (rows,))


def use_limits(dice: Dice, held: Snapshot) -> Move:
    some = dice.some(range(1, 5))
    return dice.one(
        [
            Move("limits", "lock", (some,)),
            Move("limits", "bump", ({limit: dice.number(-2, 2) for limit in some},)),
            Move("limits", "parked", ()),
        ]
    )


def _reservation(dice: Dice) -> Reservation:
    worker, job, shape, at = (dice.number(1, 3) for _ in range(4))
    return Reservation(WorkerId(worker), JobId(job), ShapeId(shape), at)


def use_placement(dice: Dice, held: Snapshot) -> Move:
    known = [row.job for row in held.leases]
    rates = [RateRow("team", row.key, dice.number(0, 3), "[1]") for row in held.rates]
    return dice.one(
        [
            Move("placement", "bind", (dice.some(known), dice.one([None, 1, 2, 3]))),
            Move("placement", "put_rates", (dice.some(rates),)),
            Move("placement", "reserve", (_reservation(dice),)),
            Move("placement", "release", (dice.some([1, 2, 3]),)),
            Move("placement", "reservations", ()),
            Move("placement", "set_namespace_weight", (dice.one("abA"), dice.number(1, 9))),
            Move("placement", "namespace_weights", ()),
        ]
    )


def ask_placement(dice: Dice, held: Snapshot) -> Move:
    """What joins leases with jobs, which here may be missing."""
    known = {row.facts.id for row in held.jobs}
    workers = {row.worker for row in held.leases if row.job not in known}
    return dice.one(
        [
            Move("placement", "loads", ([w for w in dice.some(WORKERS) if w not in workers],)),
            Move("placement", "lock_rates", ([("team", key) for key in dice.some("rst")], True)),
        ]
    )


def intern_shapes(dice: Dice, held: Snapshot) -> Move:
    return Move("catalog", "intern_shapes", (dict.fromkeys(sorted(dice.some("abcd")), b"{}"),))


def use_catalog(dice: Dice, held: Snapshot) -> Move:
    return dice.one(
        [
            Move("catalog", "put_queue", (QueueRow(dice.one("abA"), dice.number(-2, 2), 0),)),
            Move("catalog", "queues", ()),
            Move("catalog", "set_meta", (dice.one("ab"), dice.number(-2, 2))),
            Move(
                "catalog",
                "advance_meta",
                (dice.one("ab"), dice.number(-2, 2), dice.number(-2, 2)),
            ),
            Move("catalog", "meta", ()),
            Move("catalog", "shapes_after", (dice.number(0, 4),)),
        ]
    )


def enter(dice: Dice, held: Snapshot) -> Move:
    known = [row.facts.id for row in held.jobs] + [place.job for place in held.ready]
    jobs = sorted(dice.some([job for job in range(1, 40) if job not in known]))
    rows = [new_job(job, workflow=None, limit=None, rank=dice.one(RANKS)) for job in jobs]
    return Move("flow", "enter", (rows,))


def complete(dice: Dice, held: Snapshot) -> Move:
    ended = [row.facts.id for row in held.jobs if row.facts.state]
    leases = [row for row in held.leases if row.job not in ended]
    done = [
        completion(
            row.job,
            row.attempt,
            row.worker,
            dice.one([row.incarnation, row.incarnation, 9]),
            dice.one([None, 0, 3]),
            dice.one([None, b"{}"]),
        )
        for row in dice.some(leases)
    ]
    return Move("flow", "complete", (dice.one(TIMES), done))


def log_moves(dice: Dice, held: Snapshot) -> Move:
    jobs = dice.some(JOBS)
    attempts = [dice.number(1, 2) for _ in jobs]
    steps = ((QUEUED, ASSIGNED), (ASSIGNED, RUNNING))[: dice.number(1, 2)]
    return Move("flow", "log", (Moves(dice.one(TIMES), 1, 2, steps, jobs, attempts),))


def append(dice: Dice, held: Snapshot) -> Move:
    rows = [event(job, to=dice.one([1, QUEUED]), data=dice.text()) for job in dice.some(JOBS)]
    return Move("log", "append", (rows,))


def use_log(dice: Dice, held: Snapshot) -> Move:
    """Without `of_job`: a store may find a job's events by the chain they form, not here."""
    return dice.one(
        [
            Move("log", "bump", ({name: dice.number(-2, 2) for name in dice.some("abA")},)),
            Move("log", "counters", ()),
            Move("log", "read", (dice.number(0, 9), dice.number(0, 9))),
        ]
    )


# These may fail, and may share a transaction with others of their kind.
MOVES: list[Maker] = [
    move_leases,
    mark,
    suspect,
    by_job,
    by_worker,
    overdue,
    orphans,
    update_workers,
    beat,
    ask_workers,
    insert_workflows,
    change_workflows,
    work_cascades,
    use_limits,
    use_catalog,
    use_log,
    use_placement,
    ask_placement,
]

# These use up numbers, of which a failed transaction may leave gaps in some stores, or
# rely on what was held when the transaction began.
LONE_MOVES: list[Maker] = [
    grant_jobs,
    enrol,
    add_cascades,
    intern_limits,
    intern_shapes,
    append,
    enter,
    complete,
    log_moves,
]

# These give the others something to work on.
OPENING: list[Maker] = [enrol, grant_jobs, insert_workflows, add_cascades, intern_limits, enter] * 2
