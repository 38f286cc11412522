"""`Steps`: what functions have done and wait for, and the signals that were sent."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import due, signal_row, step_row
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.steps import SignalRow, StepKind, StepRow, StepState
from windlass.domain.values.ids import AttemptNo
from windlass.store.sql.transaction import WriteTx


def waiting(job: int, name: str = "go", **changes: object) -> StepRow:
    row = step_row(job, kind=StepKind.SIGNAL.value, state=StepState.PENDING.value, value=None)
    return row._replace(namespace="team", name=name, signal=0, ended_at=None)._replace(**changes)  # type: ignore[arg-type]


def question(job: int, **changes: object) -> StepRow:
    return waiting(job, name=None, kind=StepKind.QUESTION.value, body=b"{}", **changes)  # type: ignore[arg-type]


def send(store: Driver, row: SignalRow) -> None:
    store.transact(lambda tx: tx.steps.add_signal(row))


def test_a_step_is_written_replaced_and_found(store: Driver) -> None:
    full = StepRow(2**40, "ä", 4, 3, 7, 1, 2**41, 3, "team", "n", 9, "me", b"{}", b"[1]")
    store.transact(lambda tx: tx.steps.put(full))
    store.transact(lambda tx: tx.steps.put(step_row(1, "b", asked_at=9)))
    store.transact(lambda tx: tx.steps.put(step_row(1, "a", asked_at=9)))
    store.transact(lambda tx: tx.steps.put(step_row(1, "c", asked_at=1)))
    store.transact(lambda tx: tx.steps.put(step_row(1, "b", asked_at=9, value=b"7")))
    assert store.read(lambda tx: tx.steps.find(2**40, "ä")) == full
    assert store.read(lambda tx: tx.steps.find(1, "ä")) is None
    found = store.read(lambda tx: tx.steps.find(1, "b"))
    assert found is not None
    assert found.value == b"7"
    assert store.read(lambda tx: tx.steps.count(1)) == 3
    listed = store.read(lambda tx: tx.steps.of_jobs([1, 2, 2**40]))
    assert listed == {
        1: [step_row(1, k, asked_at=at, value=None) for k, at in (("c", 1), ("a", 9), ("b", 9))],
        2**40: [full._replace(value=None)],
    }


def test_pending_steps_are_those_without_an_outcome(store: Driver) -> None:
    async def work(tx: WriteTx) -> list[StepRow]:
        for row in (waiting(1), step_row(1, "done"), waiting(2, state=3), waiting(3)):
            await tx.steps.put(row)
        return await tx.steps.lock_pending([2, 1])

    assert store.transact(work) == [waiting(1)]


def test_joining_are_those_that_wait_for_jobs(store: Driver) -> None:
    def joins(job: int, **changes: object) -> StepRow:
        return waiting(job, name=None, kind=StepKind.JOBS.value, body=b"[1]", **changes)  # type: ignore[arg-type]

    rows = [joins(5), joins(3), joins(3, key="b"), joins(4, state=2), waiting(6), question(7)]

    async def work(tx: WriteTx) -> None:
        for row in rows:
            await tx.steps.put(row)

    store.transact(work)
    expected = sorted([rows[0], rows[1], rows[2]], key=lambda row: (row.job, row.key))
    assert store.read(lambda tx: tx.steps.joining(0, 10)) == expected
    assert store.read(lambda tx: tx.steps.joining(3, 10)) == [rows[0]]
    assert store.read(lambda tx: tx.steps.joining(0, 2)) == expected[:2]


def test_a_signal_finds_those_who_wait_for_its_name_in_time(store: Driver) -> None:
    rows = [
        waiting(5),
        waiting(1, until=10),
        waiting(2, until=9),
        waiting(3, "other"),
        waiting(4, namespace="theirs"),
        waiting(6, state=2),
        question(7),
        waiting(8, signal=7),
        waiting(9, signal=6),
        waiting(10),
    ]

    async def work(tx: WriteTx) -> list[StepRow]:
        for row in rows:
            await tx.steps.put(row)
        await tx.steps.lock_name("team", "go")
        return await tx.steps.waiting(signal_row("go", id=7, at=10), 3)

    assert [row.job for row in store.transact(work)] == [1, 5, 9]


def test_questions_are_those_of_jobs_that_wait_for_the_answer(store: Driver) -> None:
    suspended = State.SUSPENDED.code

    async def work(tx: WriteTx) -> None:
        for job in (1, 2, 3, 4, 5):
            await tx.steps.put(question(job))
        await tx.steps.put(waiting(6))
        held = [due(job, 9, suspended) for job in (1, 3, 4, 6)]
        rows = [row._replace(ticket=row.ticket._replace(attempt=AttemptNo(1))) for row in held]
        rows[2] = rows[2]._replace(ticket=rows[2].ticket._replace(attempt=AttemptNo(2)))
        await tx.places.add_due([*rows, due(5, 9)])

    store.transact(work)
    assert [row.job for row in store.read(lambda tx: tx.steps.questions(0, 9))] == [1, 3]
    assert store.read(lambda tx: tx.steps.questions(1, 9)) == [question(3)]
    assert store.read(lambda tx: tx.steps.questions(0, 1)) == [question(1)]


def test_signals_come_in_order_and_within_bounds(store: Driver) -> None:
    for number, at in enumerate((5, 7, 7, 9)):
        send(store, signal_row("a", at=at, key=f"k{number}"))
    store.transact(lambda tx: tx.steps.add_signal(signal_row("a", namespace="theirs", at=1)))

    def next_id(after: int, since: int, until: int) -> int | None:
        row = store.read(
            lambda tx: tx.steps.next_signal("team", "a", after=after, since=since, until=until)
        )
        return None if row is None else row.id

    assert [next_id(0, 0, 99), next_id(1, 0, 99), next_id(2, 0, 99), next_id(3, 0, 99)] == [
        1, 2, 3, 4,
    ]  # fmt: skip
    assert (next_id(4, 0, 99), next_id(0, 6, 99), next_id(0, 8, 8), next_id(1, 0, 6)) == (
        None, 2, None, None,
    )  # fmt: skip
    assert store.read(lambda tx: tx.steps.count_signals("team", 3)) == 3
    assert store.read(lambda tx: tx.steps.count_signals("nobody", 3)) == 0
    found = store.read(lambda tx: tx.steps.signal_of_key("team", "a", "k1"))
    assert found is not None
    assert found.id == 2
    assert store.read(lambda tx: tx.steps.signal_of_key("team", "b", "k1")) is None
    assert store.read(lambda tx: tx.steps.last_signal("team", "a")) == 4
    assert store.read(lambda tx: tx.steps.last_signal("team", "b")) == 0


def test_open_signals_are_closed_and_old_ones_dropped(store: Driver) -> None:
    for name, at in (("a", 3), ("b", 1), ("c", 2)):
        send(store, signal_row(name, at=at))
    store.transact(lambda tx: tx.steps.close_signal(2))
    assert [row.id for row in store.read(lambda tx: tx.steps.open_signals(9))] == [1, 3]
    assert store.transact(lambda tx: tx.steps.drop_signals(3, 1)) == 1
    assert [row.name for row in store.snapshot().signals] == ["a", "c"]
    assert store.transact(lambda tx: tx.steps.drop_signals(3, 9)) == 1
    assert [row.name for row in store.snapshot().signals] == ["a"]


def test_steps_go_with_their_job(store: Driver) -> None:
    store.transact(lambda tx: tx.steps.put(step_row(1)))
    store.transact(lambda tx: tx.steps.put(step_row(2)))
    store.transact(lambda tx: tx.retention.remove_jobs([1]))
    assert store.snapshot().steps == (step_row(2),)
