"""`Workflows`: what workflows were submitted with, their jobs, and a recount."""

from functools import partial

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import (
    COMPLETED,
    FAILED,
    QUEUED,
    RETRYING,
    RUNNING,
    about,
    due,
    facts,
    grant,
    job_end,
    new_job,
    ticket,
    wait,
    workflow,
)
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import COUNTS, WorkflowState
from windlass.domain.rows.records import WorkflowAbout
from windlass.store.sql.transaction import WriteTx

BLOCKED = State.BLOCKED.code


def test_what_a_workflow_was_submitted_with_is_told_with_every_column(store: Driver) -> None:
    rows = [about(1, key=None), about(2, reason="“why”"), about(3, base=0)]
    for row in rows:
        store.transact(partial(_describe, row=row))
    told = store.transact(lambda tx: tx.workflows.about([3, 1, 9]))
    assert list(told.items()) == [(1, rows[0]), (3, rows[2])]
    assert store.snapshot().workflow_about == tuple(rows)


async def _describe(tx: WriteTx, row: WorkflowAbout) -> None:
    await tx.workflows.describe(row)


def test_a_reason_changes_nothing_else(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.describe(about(1)))
    store.transact(lambda tx: tx.workflows.set_reason(1, "no longer needed"))
    store.transact(lambda tx: tx.workflows.set_reason(9, "unknown"))
    assert store.snapshot().workflow_about == (about(1, reason="no longer needed"),)


def test_a_key_names_the_first_one_until_that_is_replaced(store: Driver) -> None:
    assert store.transact(lambda tx: tx.workflows.claim_key("team", "k", 1)) == 1
    assert store.transact(lambda tx: tx.workflows.claim_key("team", "k", 2)) == 1
    assert store.transact(lambda tx: tx.workflows.claim_key("other", "k", 3)) == 3
    assert store.transact(lambda tx: tx.workflows.claim_key("team", "k", 4, 3)) == 1
    assert store.transact(lambda tx: tx.workflows.claim_key("team", "k", 5, 1)) == 5
    assert store.snapshot().workflow_keys == (("other", "k", 3), ("team", "k", 5))


def fill(store: Driver) -> None:
    """Jobs 1 to 6 of workflow 2, two of them ended; 7 of another, 8 of none."""

    async def work(tx: WriteTx) -> None:
        rows = [new_job(job) for job in range(1, 7)]
        await tx.jobs.insert([*rows, new_job(7, workflow=3), new_job(8, workflow=None)])
        await tx.jobs.end([job_end(2, state=FAILED), job_end(5, state=COMPLETED)])

    store.transact(work)


def test_the_jobs_of_a_workflow_come_in_pages(store: Driver) -> None:
    fill(store)
    page = store.transact(lambda tx: tx.workflows.jobs_of(2, 0, 3))
    assert [fact.id for fact in page] == [1, 2, 3]
    assert [bool(fact.state) for fact in page] == [False, True, False]
    rest = store.transact(lambda tx: tx.workflows.jobs_of(2, 3, 10))
    assert [fact.id for fact in rest] == [4, 5, 6]
    assert page[0] == facts(new_job(1))
    assert store.transact(lambda tx: tx.workflows.jobs_of(9, 0, 10)) == []


def test_open_jobs_leave_out_those_that_ended(store: Driver) -> None:
    fill(store)
    assert store.transact(lambda tx: tx.workflows.open_jobs(2, 0, 3)) == [1, 3, 4]
    assert store.transact(lambda tx: tx.workflows.open_jobs(2, 4, 3)) == [6]
    assert store.transact(lambda tx: tx.workflows.open_jobs(2, 6, 3)) == []


def test_jobs_outside_are_those_of_no_or_another_workflow(store: Driver) -> None:
    fill(store)
    wanted = [8, 1, 7, 3, 99]
    assert store.transact(lambda tx: tx.workflows.outside(2, wanted)) == [7, 8]
    assert store.transact(lambda tx: tx.workflows.outside(2, [])) == []


def test_unfinished_workflows_ascend_and_the_newest_descend(store: Driver) -> None:
    states = dict(enumerate(WorkflowState, 1))
    rows = [workflow(number, state=int(state)) for number, state in states.items()]
    store.transact(lambda tx: tx.workflows.insert(rows))
    assert store.transact(lambda tx: tx.workflows.unfinished(0, 2)) == rows[:2]
    assert store.transact(lambda tx: tx.workflows.unfinished(2, 9)) == rows[2:3]
    assert store.transact(lambda tx: tx.workflows.newest(6, 2)) == [rows[4], rows[3]]


def test_a_recount_goes_by_ends_and_places(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(job, flags=0, limit=None) for job in range(1, 11)])
        await tx.jobs.insert([new_job(job, flags=1, limit=None) for job in (11, 12)])
        await tx.jobs.insert([new_job(13, limit=7), new_job(14, workflow=3)])
        await tx.places.add_waits([wait(1), wait(2, manual=1)])  # 3 stands nowhere
        await tx.places.add_due([due(4, at=9), due(5, at=9, state=RETRYING)])
        await tx.places.add_ready([ticket(6), ticket(7)])
        await tx.leases.grant([grant(ticket(7))], RUNNING, 5, 5)
        await tx.places.add_parked([ticket(13, limit=7)])
        ends = {8: COMPLETED, 9: FAILED, 10: FAILED, 11: FAILED, 12: COMPLETED}
        await tx.jobs.end(
            [job_end(job, state=state, flags=int(job > 10)) for job, state in ends.items()]
        )
        await tx.jobs.set_superseded([(10, 6)])

    store.transact(work)
    counts = [0] * COUNTS
    counts[BLOCKED], counts[QUEUED], counts[RETRYING], counts[RUNNING] = 3, 3, 1, 1
    counts[COMPLETED], counts[FAILED], counts[0] = 2, 2, 1
    assert store.transact(lambda tx: tx.workflows.recount(2)) == tuple(counts)
    assert store.transact(lambda tx: tx.workflows.recount(9)) == (0,) * COUNTS


def test_a_removed_workflow_takes_its_description_and_its_key_along(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.workflows.insert([workflow(1), workflow(2)])
        await tx.workflows.describe(about(1))
        await tx.workflows.describe(about(2))
        await tx.workflows.claim_key("team", "a", 1)
        await tx.workflows.claim_key("team", "b", 2)
        await tx.jobs.insert([new_job(1)])

    store.transact(work)
    store.transact(lambda tx: tx.retention.remove_workflows([1, 2]))
    shown = store.snapshot()
    assert shown.workflow_about == (about(2),)
    assert shown.workflow_keys == (("team", "b", 2),)


def test_holding_rows_changes_nothing(store: Driver) -> None:
    fill(store)
    store.transact(lambda tx: tx.places.add_waits([wait(1)]))
    before = store.snapshot()
    store.transact(lambda tx: tx.jobs.hold([3, 1, 99]))
    store.transact(lambda tx: tx.places.hold([1, 99]))
    assert store.snapshot() == before


def test_lists_of_dependents_begin_in_chunks(store: Driver) -> None:
    fill(store)
    edges = {1: list(range(10, 2_510)), 3: [7], 4: []}
    store.transact(lambda tx: tx.jobs.start_dependents(edges))
    assert store.transact(lambda tx: tx.jobs.dependents([1, 3, 4], 0)) == {
        1: tuple(range(10, 1_010)), 3: (7,),
    }  # fmt: skip
    assert store.transact(lambda tx: tx.jobs.dependents([1, 3], 2)) == {
        1: tuple(range(2_010, 2_510)),
    }  # fmt: skip
    store.transact(lambda tx: tx.jobs.add_dependents({1: [1], 3: [8]}))
    assert store.transact(lambda tx: tx.jobs.dependents([1], 2))[1][-1] == 1
    assert store.transact(lambda tx: tx.jobs.dependents([3], 0)) == {3: (7, 8)}
