"""`Access`: tokens and enrolment codes."""

import asyncio
from functools import partial

from tests.store.conformance.driver import Driver, refused
from tests.store.conformance.rows import code, token
from windlass.domain.access.tokens import Code
from windlass.store.sql.transaction import WriteTx


def test_tokens_get_rising_ids_and_are_found_by_digest(store: Driver) -> None:
    rows = [token("ci", namespaces=()), token("Jürgen", worker=7, expires_at=0, role="worker")]
    ids = [store.transact(lambda tx: tx.access.insert(rows[0]))]
    ids.append(store.transact(lambda tx: tx.access.insert(rows[1])))
    assert ids == [1, 2]
    expected = [row._replace(id=number) for number, row in zip(ids, rows, strict=True)]
    assert store.read(lambda tx: tx.access.by_digest("digest of Jürgen")) == expected[1]
    assert store.read(lambda tx: tx.access.by_digest("of nobody")) is None
    assert store.read(lambda tx: tx.access.all()) == expected
    assert store.snapshot().tokens == tuple(expected)


def test_a_digest_belongs_to_one_token(store: Driver) -> None:
    store.transact(lambda tx: tx.access.insert(token("ci")))
    with refused():
        store.transact(lambda tx: tx.access.insert(token("ci")))
    assert len(store.snapshot().tokens) == 1


def test_a_token_is_revoked_once(store: Driver) -> None:
    store.transact(lambda tx: tx.access.insert(token("ci")))
    assert store.transact(lambda tx: tx.access.revoke(1, 50)) is True
    assert store.transact(lambda tx: tx.access.revoke(1, 60)) is False
    assert store.transact(lambda tx: tx.access.revoke(2, 60)) is False
    assert [row.revoked_at for row in store.snapshot().tokens] == [50]


def test_a_token_can_only_end_earlier(store: Driver) -> None:
    store.transact(lambda tx: tx.access.insert(token("ci", expires_at=0)))
    assert store.transact(lambda tx: tx.access.expire(1, 50)) is True
    assert store.transact(lambda tx: tx.access.expire(1, 40)) is True
    assert store.transact(lambda tx: tx.access.expire(1, 60)) is False
    assert store.transact(lambda tx: tx.access.expire(2, 60)) is False
    store.transact(lambda tx: tx.access.revoke(1, 20))
    assert store.transact(lambda tx: tx.access.expire(1, 30)) is False
    assert [row.expires_at for row in store.snapshot().tokens] == [40]


async def touch(tx: WriteTx, uses: dict[int, int]) -> None:
    await tx.access.touch(uses)


def test_the_latest_use_of_a_token_is_kept(store: Driver) -> None:
    store.transact(lambda tx: tx.access.insert(token("ci")))
    store.transact(lambda tx: tx.access.insert(token("unused")))
    for uses in ({1: 50}, {1: 70, 99: 70}, {1: 60}, {}):
        store.transact(partial(touch, uses=uses))
    assert [row.last_used_at for row in store.snapshot().tokens] == [70, 0]


def test_sessions_that_expired_long_ago_are_forgotten(store: Driver) -> None:
    async def add(tx: WriteTx) -> None:
        for name, kind, at in (("a", "session", 10), ("b", "token", 10), ("c", "session", 20)):
            await tx.access.insert(token(name, kind=kind, expires_at=at))

    store.transact(add)
    assert store.transact(lambda tx: tx.access.trim_sessions(20, 5)) == 1
    assert [row.name for row in store.snapshot().tokens] == ["b", "c"]
    assert store.read(lambda tx: tx.access.by_digest("digest of a")) is None


def test_a_code_is_used_once_and_in_time(store: Driver) -> None:
    async def add(tx: WriteTx) -> None:
        await tx.access.add_code(code("one", expires_at=100))
        await tx.access.add_code(code("two", expires_at=100))

    store.transact(add)
    used = code("one", expires_at=100, used_at=99)
    assert store.transact(lambda tx: tx.access.use_code("one", 99)) == used
    assert store.transact(lambda tx: tx.access.use_code("one", 99)) is None
    assert store.transact(lambda tx: tx.access.use_code("two", 100)) is None
    assert store.transact(lambda tx: tx.access.use_code("three", 1)) is None
    assert [(row.digest, row.used_at) for row in store.snapshot().codes] == [
        ("one", 99),
        ("two", 0),
    ]


def test_the_tokens_of_a_worker_go_with_it(store: Driver) -> None:
    async def add(tx: WriteTx) -> None:
        for name, worker in (("a", 7), ("b", 8), ("c", 7), ("d", 0)):
            await tx.access.insert(token(name, worker=worker))

    store.transact(add)
    assert store.transact(lambda tx: tx.access.remove_of_worker(7)) == 2
    assert store.transact(lambda tx: tx.access.remove_of_worker(7)) == 0
    assert store.transact(lambda tx: tx.access.remove_of_worker(0)) == 0
    assert [row.name for row in store.snapshot().tokens] == ["b", "d"]
    assert store.read(lambda tx: tx.access.by_digest("digest of a")) is None
    store.transact(lambda tx: tx.access.insert(token("a")))


def test_the_sessions_of_a_worker_end_and_its_secret_stays(store: Driver) -> None:
    async def add(tx: WriteTx) -> None:
        for name, worker, incarnation in (("a", 7, 0), ("b", 7, 4), ("c", 8, 4), ("d", 0, 4)):
            await tx.access.insert(token(name, worker=worker, incarnation=incarnation))

    store.transact(add)
    store.transact(lambda tx: tx.access.end_sessions(7))
    store.transact(lambda tx: tx.access.end_sessions(0))
    assert [row.name for row in store.snapshot().tokens] == ["a", "c", "d"]
    assert store.read(lambda tx: tx.access.by_digest("digest of b")) is None


def test_codes_that_expired_long_ago_are_forgotten(store: Driver) -> None:
    async def add(tx: WriteTx) -> None:
        for digest, at in (("a", 30), ("b", 10), ("c", 20), ("d", 20)):
            await tx.access.add_code(code(digest, expires_at=at))

    store.transact(add)
    assert store.transact(lambda tx: tx.access.trim_codes(30, 2)) == 2
    assert [row.digest for row in store.snapshot().codes] == ["a", "d"]
    assert store.transact(lambda tx: tx.access.trim_codes(30, 2)) == 1
    assert store.transact(lambda tx: tx.access.trim_codes(30, 2)) == 0


def test_a_code_lets_one_of_many_in(store: Driver) -> None:
    """Also where two servers try at the same moment."""
    store.transact(lambda tx: tx.access.add_code(code("one", expires_at=100)))
    other = store.companion("s2") or store.store
    handles = [store.store, other] * 4

    async def use_all() -> list[Code | None]:
        uses = [handle.transact(lambda tx: tx.access.use_code("one", 5)) for handle in handles]
        return list(await asyncio.gather(*uses))

    assert sorted(used is not None for used in store.run(use_all())) == [False] * 7 + [True]


def test_a_code_of_a_link_enrols_nobody_and_one_for_enrolling_opens_no_session(
    store: Driver,
) -> None:
    async def add(tx: WriteTx) -> None:
        await tx.access.add_code(code("link", expires_at=100, token=7))
        await tx.access.add_code(code("enrol", expires_at=100))

    store.transact(add)
    assert store.transact(lambda tx: tx.access.use_code("link", 50)) is None
    assert store.transact(lambda tx: tx.access.use_link("enrol", 50)) is None
    used = store.transact(lambda tx: tx.access.use_link("link", 50))
    assert used is not None
    assert used.token == 7
    assert store.transact(lambda tx: tx.access.use_link("link", 50)) is None


def test_a_token_is_found_by_its_id(store: Driver) -> None:
    number = store.transact(lambda tx: tx.access.insert(token("one", parent=3)))
    found = store.read(lambda tx: tx.access.by_id(number))
    assert found is not None
    assert (found.name, found.parent) == ("one", 3)
    assert store.read(lambda tx: tx.access.by_id(number + 1)) is None
