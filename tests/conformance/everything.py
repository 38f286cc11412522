"""Steps that between them write to every table: `FILL` an empty store, then `CHANGE` it."""

from collections.abc import Awaitable, Callable

from tests.conformance.rows import (
    CANCELING,
    QUEUED,
    RUNNING,
    artifact,
    attempt,
    cascade,
    code,
    due,
    event,
    facts_at,
    grant,
    job_end,
    log_row,
    name_row,
    new_job,
    ticket,
    token,
    wait,
    worker,
    workflow,
)
from windlass.domain.baseline import BaselineRow
from windlass.domain.files import Dynamic, Progress
from windlass.domain.records import JobTry, KeyRow, QueueRow
from windlass.ports.store import Tx

# Roles whose tests and steps are still to come, and their tables. Both lists are exact: a
# role that is tested, or a table that is written to below, must leave them.
PENDING_ROLES: list[str] = []
PENDING_TABLES: list[str] = []

Step = Callable[[Tx], Awaitable[object]]

FILL: list[Step] = [
    lambda tx: tx.workers.insert(worker("a")),
    lambda tx: tx.workers.insert(worker("b")),
    lambda tx: tx.jobs.allocate(20),
    lambda tx: tx.jobs.insert([new_job(job) for job in range(1, 21)]),
    lambda tx: tx.jobs.record_attempts([attempt(1, 1)]),
    lambda tx: tx.jobs.add_dependents({1: range(1_200), 2: [3]}),
    lambda tx: tx.jobs.claim_keys([KeyRow("team", "k", 1, "d")]),
    lambda tx: tx.places.add_ready([ticket(1), ticket(2), ticket(3, limit=1), ticket(4)]),
    lambda tx: tx.places.add_waits([wait(5, unmet=2), wait(6), wait(7, unmet=2, manual=1)]),
    lambda tx: tx.places.add_due([due(8, at=10), due(9, at=20), due(10, at=30)]),
    lambda tx: tx.places.add_parked([ticket(11, limit=1), ticket(12, limit=1)]),
    lambda tx: tx.leases.grant([grant(ticket(1)), grant(ticket(2))], RUNNING, 100, 10),
    lambda tx: tx.limits.intern([("team", "a", 2)]),
    lambda tx: tx.workflows.allocate(1),
    lambda tx: tx.workflows.insert([workflow(1)]),
    lambda tx: tx.workflows.add_cascades([cascade(1), cascade(2)]),
    lambda tx: tx.catalog.intern_shapes({"aa": b"{}"}),
    lambda tx: tx.catalog.put_queue(QueueRow("live", 100, 0)),
    lambda tx: tx.catalog.set_meta("epoch", 1),
    lambda tx: tx.access.insert(token("a")),
    lambda tx: tx.access.add_code(code("c")),
    lambda tx: tx.files.put_log(log_row(1)),
    lambda tx: tx.files.add_artifacts([artifact(1, "a"), artifact(2, "b")]),
    lambda tx: tx.files.set_name(name_row("n")),
    lambda tx: tx.files.put_progress(Progress(1, 1, b"1", 2)),
    lambda tx: tx.files.put_dynamic([Dynamic(1, 1, b"{}")]),
    lambda tx: tx.retention.put_baseline([BaselineRow(0, 0, "{}"), BaselineRow(1, 2, "{}")]),
    lambda tx: tx.log.bump({"retries": 1}),
    lambda tx: tx.log.append([event(1), event(2)]),
]

CHANGE: list[Step] = [
    lambda tx: tx.workers.update([worker("z", id=1)]),
    lambda tx: tx.workers.beat([(1, 91, 92, 93)]),
    lambda tx: tx.workers.remove(2),
    lambda tx: tx.jobs.note_tries([JobTry(3, 1, 1, 0, 0, "[]")]),
    lambda tx: tx.jobs.end([job_end(4)]),
    lambda tx: tx.jobs.set_priority(5, 1, 2, 3),
    lambda tx: tx.jobs.set_superseded(4, 6),
    lambda tx: tx.jobs.add_dependents({2: [4], 3: [1]}),
    lambda tx: tx.jobs.point_key("team", "k", 2),
    lambda tx: tx.jobs.claim_keys([KeyRow("team", "l", 1, "d")]),
    lambda tx: tx.places.meet({5: 1, 6: 1}),
    lambda tx: tx.places.meet({7: 1}, manual=True),
    lambda tx: tx.places.take_waits([5]),
    lambda tx: tx.places.pull_due(10, 1),
    lambda tx: tx.places.take_due([10]),
    lambda tx: tx.places.unpark([ticket(11, limit=1)]),
    lambda tx: tx.places.take_parked([facts_at(ticket(12, limit=1))]),
    lambda tx: tx.places.park([ticket(3, limit=1)]),
    lambda tx: tx.places.take_ready([facts_at(ticket(4))]),
    lambda tx: tx.leases.touch([(1, 200, 300)]),
    lambda tx: tx.leases.allow([(1, 400, 500)]),
    lambda tx: tx.leases.mark([1], CANCELING, "by hand"),
    lambda tx: tx.leases.drop([2]),
    lambda tx: tx.limits.intern([("team", "a", 5)]),
    lambda tx: tx.limits.bump({1: 1}),
    lambda tx: tx.workflows.bump({1: {QUEUED: 1}}),
    lambda tx: tx.workflows.set_state([(1, 2, 3, 4)]),
    lambda tx: tx.workflows.advance_cascade(1, 5),
    lambda tx: tx.workflows.advance_cascade(2, None),
    lambda tx: tx.catalog.put_queue(QueueRow("live", 1, 1)),
    lambda tx: tx.catalog.set_meta("epoch", 2),
    lambda tx: tx.access.revoke(1, 5),
    lambda tx: tx.access.use_code("c", 5),
    lambda tx: tx.files.put_log(log_row(1, bytes=99)),
    lambda tx: tx.files.add_artifacts([artifact(1, "a", size=1)]),
    lambda tx: tx.files.set_name(name_row("n", job=7)),
    lambda tx: tx.files.put_progress(Progress(1, 2, b"2", 3)),
    lambda tx: tx.files.put_dynamic([Dynamic(1, 2, b"[]")]),
    lambda tx: tx.retention.put_baseline([BaselineRow(0, 0, "[]")]),
    lambda tx: tx.retention.drop_baseline(1, [2]),
    lambda tx: tx.retention.remove_jobs([20]),
    lambda tx: tx.retention.remove_workflows([1]),
    lambda tx: tx.log.bump({"retries": 1}),
    lambda tx: tx.log.append([event(3)]),
]
