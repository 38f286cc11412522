"""`Jobs`: idempotency keys, each of which stands for one job of its namespace."""

from tests.store.conformance.driver import Driver
from windlass.domain.rows.records import KeyRow
from windlass.store.sql.transaction import WriteTx

FIRST = KeyRow("team", "build-1", 1, "digest-a")


def test_a_new_key_stands_for_the_job_that_claims_it(store: Driver) -> None:
    told = store.transact(lambda tx: tx.jobs.claim_keys([FIRST]))
    assert told == {("team", "build-1"): FIRST}
    assert store.snapshot().keys == (FIRST,)


def test_a_key_with_the_same_body_answers_the_first_job(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.claim_keys([FIRST]))
    told = store.transact(lambda tx: tx.jobs.claim_keys([FIRST._replace(job=2)]))
    assert told == {("team", "build-1"): FIRST}


def test_a_key_with_another_body_answers_the_first_digest(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.claim_keys([FIRST]))
    other = FIRST._replace(job=2, digest="digest-b")
    assert store.transact(lambda tx: tx.jobs.claim_keys([other])) == {("team", "build-1"): FIRST}
    assert store.snapshot().keys == (FIRST,)


def test_a_submission_s_key_keeps_the_ids_of_its_jobs(store: Driver) -> None:
    row = FIRST._replace(spans=((1, 7), (9, 9), (12, 2**40)))
    store.transact(lambda tx: tx.jobs.claim_keys([row]))
    assert store.snapshot().keys == (row,)
    other = FIRST._replace(job=20, spans=((20, 21),))
    assert store.transact(lambda tx: tx.jobs.claim_keys([other])) == {("team", "build-1"): row}


def test_namespaces_do_not_share_keys(store: Driver) -> None:
    other = FIRST._replace(namespace="other", job=2)
    told = store.transact(lambda tx: tx.jobs.claim_keys([FIRST, other]))
    assert told == {("team", "build-1"): FIRST, ("other", "build-1"): other}


def test_many_keys_at_once_new_and_old(store: Driver) -> None:
    old = [KeyRow("team", f"key-{n}", n, f"digest-{n}") for n in range(0, 300, 3)]
    store.transact(lambda tx: tx.jobs.claim_keys(old))
    claims = [KeyRow("team", f"key-{n}", 1_000 + n, f"digest-{n}") for n in range(300)]
    told = store.transact(lambda tx: tx.jobs.claim_keys(claims[::-1]))
    expected = [claim if n % 3 else old[n // 3] for n, claim in enumerate(claims)]
    assert told == {(row.namespace, row.key): row for row in expected}
    assert store.snapshot().keys == tuple(sorted(expected))


def test_keys_are_compared_exactly(store: Driver) -> None:
    names = ["a", "A", "a ", "ä", "a\u0308", "b' OR '1'='1"]
    claims = [KeyRow("team", name, n, "d") for n, name in enumerate(names, start=1)]
    told = store.transact(lambda tx: tx.jobs.claim_keys(claims))
    assert {key: row.job for (_, key), row in told.items()} == {
        name: n for n, name in enumerate(names, start=1)
    }


def test_a_key_claimed_in_this_transaction_is_there_for_its_rest(store: Driver) -> None:
    async def claim_twice(tx: WriteTx) -> dict[tuple[str, str], KeyRow]:
        await tx.jobs.claim_keys([FIRST])
        return await tx.jobs.claim_keys([FIRST._replace(job=2)])

    assert store.transact(claim_twice) == {("team", "build-1"): FIRST}


def test_a_key_points_to_a_newer_job(store: Driver) -> None:
    other = KeyRow("team", "build-2", 5, "digest-c")
    store.transact(lambda tx: tx.jobs.claim_keys([FIRST, other]))
    newer = FIRST._replace(job=9, digest="digest-b", spans=((9, 9), (0, 0), (1, 5)))
    told = store.transact(lambda tx: tx.jobs.retake_keys([newer], [1]))
    assert told == {("team", "build-1"): newer}
    assert store.snapshot().keys == (newer, other)


def test_a_key_that_another_has_taken_meanwhile_stays_there(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.claim_keys([FIRST]))
    newer, unknown = FIRST._replace(job=9), FIRST._replace(namespace="other", job=9)
    told = store.transact(lambda tx: tx.jobs.retake_keys([newer, unknown], [7, 1]))
    assert told == {("team", "build-1"): FIRST}
    assert store.snapshot().keys == (FIRST,)
