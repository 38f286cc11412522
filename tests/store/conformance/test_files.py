"""`Files`: what is known of logs, artifacts, names, progress and resolved lookups."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import artifact, log_row, name_row
from windlass.domain.rows.files import Dynamic, Progress
from windlass.store.sql.transaction import WriteTx


def test_a_log_is_written_and_replaced(store: Driver) -> None:
    assert store.read(lambda tx: tx.files.log(1, 1)) is None
    store.transact(lambda tx: tx.files.put_log(log_row(1, bytes=2**40, gap_to=2**39)))
    store.transact(lambda tx: tx.files.put_log(log_row(1, 2)))
    store.transact(lambda tx: tx.files.put_log(log_row(1, 2, bytes=7, state=2)))
    store.transact(lambda tx: tx.files.put_log(log_row(3)))
    first, second = log_row(1, bytes=2**40, gap_to=2**39), log_row(1, 2, bytes=7, state=2)
    assert store.read(lambda tx: tx.files.log(1, 2)) == second
    told = store.read(lambda tx: tx.files.logs([3, 1, 9]))
    assert told == {1: [first, second], 3: [log_row(3)]}
    assert store.snapshot().logs == (first, second, log_row(3))


def test_logs_that_have_not_ended_are_found(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        for job in (5, 1, 3, 9):
            await tx.files.put_log(log_row(job, 2, state=2 if job == 3 else 1))
        await tx.files.put_log(log_row(5, 1))

    store.transact(work)
    told = store.read(lambda tx: tx.files.streaming(0, 3))
    assert told == [log_row(1, 2), log_row(5, 1), log_row(5, 2)]
    assert store.read(lambda tx: tx.files.streaming(5, 3)) == [log_row(9, 2)]


def test_an_artifact_of_the_same_name_replaces_the_attempt_s_own(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.files.add_artifacts([artifact(2, "b"), artifact(1, "a"), artifact(1, "Ä")])
        await tx.files.add_artifacts([artifact(1, "a", attempt=2), artifact(1, "a", size=5)])

    store.transact(work)
    told = store.read(lambda tx: tx.files.artifacts([2, 1, 4]))
    assert told == {
        1: [artifact(1, "a", size=5), artifact(1, "Ä"), artifact(1, "a", attempt=2)],
        2: [artifact(2, "b")],
    }
    assert store.snapshot().artifacts == (*told[1], *told[2])


def test_the_last_of_equal_names_in_one_call_counts(store: Driver) -> None:
    rows = [artifact(1, "a", size=size) for size in (1, 2, 3)]
    store.transact(lambda tx: tx.files.add_artifacts(rows))
    assert store.snapshot().artifacts == (artifact(1, "a", size=3),)


def test_names_are_set_moved_and_found(store: Driver) -> None:
    other = name_row("env/a", namespace="other")

    async def work(tx: WriteTx) -> None:
        for row in (name_row("env/b"), name_row("env/a"), other, name_row("env/b", job=9)):
            await tx.files.set_name(row)

    store.transact(work)
    mine = [name_row("env/a"), name_row("env/b", job=9)]
    assert store.read(lambda tx: tx.files.names("team")) == mine
    assert store.read(lambda tx: tx.files.names(None)) == [other, *mine]
    assert store.read(lambda tx: tx.files.names("nobody's")) == []
    found = store.read(lambda tx: tx.files.lookup("team", ["env/b", "env/c"]))
    assert found == {"env/b": mine[1]}
    assert store.snapshot().names == (other, *mine)


def test_digests_in_use_are_those_of_artifacts_and_names(store: Driver) -> None:
    store.transact(lambda tx: tx.files.add_artifacts([artifact(1, "a", sha256="aa")]))
    store.transact(lambda tx: tx.files.set_name(name_row("n", sha256="bb")))
    told = store.read(lambda tx: tx.files.referenced(["aa", "bb", "cc", "aa"]))
    assert told == {"aa", "bb"}


def test_only_the_newest_progress_of_a_job_is_kept(store: Driver) -> None:
    store.transact(lambda tx: tx.files.put_progress(Progress(1, 1, b'{"done":1}', 10)))
    store.transact(lambda tx: tx.files.put_progress(Progress(1, 2, b"null", 20)))
    assert store.read(lambda tx: tx.files.progress([2, 1])) == {1: Progress(1, 2, b"null", 20)}
    assert store.snapshot().progress == (Progress(1, 2, b"null", 20),)


def test_only_the_newest_resolved_lookups_of_a_job_are_kept(store: Driver) -> None:
    store.transact(lambda tx: tx.files.put_dynamic([Dynamic(1, 1, b"{}"), Dynamic(2, 1, b"[]")]))
    store.transact(lambda tx: tx.files.put_dynamic([Dynamic(1, 2, b'{"a":1}')]))
    expected = {1: Dynamic(1, 2, b'{"a":1}'), 2: Dynamic(2, 1, b"[]")}
    assert store.read(lambda tx: tx.files.dynamic([1, 2, 3])) == expected
    assert store.snapshot().dynamic == tuple(expected.values())
