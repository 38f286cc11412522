"""`Workflows`: counts and states of what spans several jobs."""

from tests.store.conformance.driver import Driver, refused
from tests.store.conformance.rows import COMPLETED, FAILED, QUEUED, RUNNING, workflow
from windlass.domain.lifecycle.workflow_state import COUNTS
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.values.ids import WorkflowId

FULL = WorkflowRow(
    id=WorkflowId(1),
    namespace="team",
    name="“nightly”",
    state=2,
    run=3,
    flags=4,
    created_at=5_000,
    finished_at=6_000,
    counts=tuple(range(COUNTS)),
)


def counts(**by_state: int) -> tuple[int, ...]:
    """Counts by the state's code, written as `_2=5`."""
    values = {int(name[1:]): value for name, value in by_state.items()}
    return tuple(values.get(code, 0) for code in range(COUNTS))


def test_a_workflow_is_told_with_every_column(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.insert([FULL]))
    assert store.transact(lambda tx: tx.workflows.lock([1])) == {1: FULL}
    assert store.snapshot().workflows == (FULL,)


def test_locked_workflows_are_told_ascending_and_unknown_ones_left_out(store: Driver) -> None:
    rows = [workflow(3, name="c"), workflow(1, name="a"), workflow(2)]
    store.transact(lambda tx: tx.workflows.insert(rows))
    told = store.transact(lambda tx: tx.workflows.lock([3, 9, 1]))
    assert list(told.items()) == [(1, rows[1]), (3, rows[0])]


def test_an_id_is_never_taken_twice(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.insert([FULL]))
    with refused():
        store.transact(lambda tx: tx.workflows.insert([workflow(1)]))
    assert store.snapshot().workflows == (FULL,)


def test_a_bump_adds_to_the_counts_and_tells_the_new_rows(store: Driver) -> None:
    rows = [workflow(1), workflow(2), workflow(3)]
    store.transact(lambda tx: tx.workflows.insert(rows))
    first = store.transact(lambda tx: tx.workflows.bump({3: {QUEUED: 5}, 1: {QUEUED: 2}}))
    assert first == [rows[0]._replace(counts=counts(_2=2)), rows[2]._replace(counts=counts(_2=5))]
    deltas = {3: {QUEUED: -3, RUNNING: 2, COMPLETED: 1, 0: 1}, 9: {QUEUED: 1}}
    (last,) = store.transact(lambda tx: tx.workflows.bump(deltas))
    assert last == rows[2]._replace(counts=counts(_0=1, _2=2, _4=2, _8=1))
    assert store.snapshot().workflows == (first[0], rows[1], last)


def test_every_state_has_a_count_of_its_own(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.insert([FULL]))
    deltas = {code: 100 * code for code in range(COUNTS)}
    (row,) = store.transact(lambda tx: tx.workflows.bump({1: deltas}))
    assert row.counts == tuple(101 * code for code in range(COUNTS))


def test_counts_may_pass_through_negative_numbers(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.insert([workflow(1)]))
    store.transact(lambda tx: tx.workflows.bump({1: {FAILED: -1}}))
    (row,) = store.transact(lambda tx: tx.workflows.bump({1: {FAILED: 3}}))
    assert row.counts[FAILED] == 2


def test_a_new_state_leaves_the_counts_alone(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.insert([FULL, workflow(2), workflow(3)]))
    store.transact(lambda tx: tx.workflows.set_state([(3, 7, 8, 9), (9, 1, 1, 1), (1, 5, 4, None)]))
    assert store.snapshot().workflows == (
        FULL._replace(state=5, run=4, finished_at=None),
        workflow(2),
        workflow(3, state=7, run=8, finished_at=9),
    )
