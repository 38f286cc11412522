"""`Workflows`: intents that survive a crash, worked off from the oldest."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import cascade, workflow_cascade


def test_intents_are_numbered_in_order_and_their_own_ids_ignored(store: Driver) -> None:
    rows = [cascade(5, id=77, kind=2, cursor=3, reason="job 5 failed"), cascade(4, id=77)]
    store.transact(lambda tx: tx.workflows.add_cascades(rows))
    store.transact(lambda tx: tx.workflows.add_cascades([cascade(6)]))
    assert store.snapshot().cascades == (
        rows[0]._replace(id=1),
        rows[1]._replace(id=2),
        cascade(6, id=3),
    )


def test_the_oldest_intent_is_pulled_until_it_is_done(store: Driver) -> None:
    assert store.transact(lambda tx: tx.workflows.pull_cascade()) is None
    store.transact(lambda tx: tx.workflows.add_cascades([cascade(9), cascade(1)]))
    pulled = store.transact(lambda tx: tx.workflows.pull_cascade())
    assert pulled == cascade(9, id=1)
    assert store.transact(lambda tx: tx.workflows.pull_cascade()) == pulled
    store.transact(lambda tx: tx.workflows.advance_cascade(1, None))
    assert store.transact(lambda tx: tx.workflows.pull_cascade()) == cascade(1, id=2)


def test_an_intent_remembers_how_far_it_got(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.add_cascades([cascade(9), cascade(1, reason="r")]))
    store.transact(lambda tx: tx.workflows.advance_cascade(2, 4))
    expected = (cascade(9, id=1), cascade(1, id=2, cursor=4, reason="r"))
    assert store.snapshot().cascades == expected


def test_advancing_to_the_beginning_is_not_the_end(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.add_cascades([cascade(9, cursor=3)]))
    store.transact(lambda tx: tx.workflows.advance_cascade(1, 0))
    assert store.snapshot().cascades == (cascade(9, id=1, cursor=0),)


def test_advancing_an_unknown_intent_changes_nothing(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.add_cascades([cascade(9)]))
    store.transact(lambda tx: tx.workflows.advance_cascade(5, 4))
    store.transact(lambda tx: tx.workflows.advance_cascade(6, None))
    assert store.snapshot().cascades == (cascade(9, id=1),)


def test_the_intents_of_some_jobs(store: Driver) -> None:
    rows = [cascade(job, kind=kind) for job, kind in ((5, 1), (4, 1), (5, 2), (6, 1))]
    store.transact(lambda tx: tx.workflows.add_cascades(rows))
    told = store.transact(lambda tx: tx.workflows.cascades_of([6, 5, 9]))
    assert [(row.id, row.job, row.kind) for row in told] == [(1, 5, 1), (3, 5, 2), (4, 6, 1)]


def test_the_intents_of_a_workflow_are_not_those_of_the_job_with_its_number(
    store: Driver,
) -> None:
    rows = [cascade(5), workflow_cascade(5), workflow_cascade(6), cascade(6)]
    store.transact(lambda tx: tx.workflows.add_cascades(rows))
    told = store.transact(lambda tx: tx.workflows.cascades_of(workflows=[5]))
    assert told == [workflow_cascade(5)._replace(id=2)]
    told = store.transact(lambda tx: tx.workflows.cascades_of([6], [5]))
    assert [(row.id, row.job, row.workflow) for row in told] == [(2, None, 5), (4, 6, None)]


def test_a_number_is_not_given_again(store: Driver) -> None:
    store.transact(lambda tx: tx.workflows.add_cascades([cascade(9)]))
    store.transact(lambda tx: tx.workflows.advance_cascade(1, None))
    store.transact(lambda tx: tx.workflows.add_cascades([cascade(8)]))
    assert store.snapshot().cascades == (cascade(8, id=2),)
