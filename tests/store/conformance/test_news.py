"""`Store.announce` and `subscribe`: what other engines on the same store hear."""

import asyncio

from tests.store.conformance.driver import Driver
from windlass.store.store import News, Store

FULL = News(arrivals=((1, -(2**60), 2**53, 4), (2, 5, 6, 1)), pokes=(7, 8), due_at=9, catalog=True)
PATIENCE_SECONDS = 60


class Listener:
    """Hears the news of one engine, and can wait until there were some."""

    def __init__(self, store: Store) -> None:
        self.heard: list[News] = []
        self._something = asyncio.Event()
        self.stop = store.subscribe(self._hear)

    def _hear(self, news: News) -> None:
        self.heard.append(news)
        self._something.set()

    async def wait(self) -> None:
        await asyncio.wait_for(self._something.wait(), PATIENCE_SECONDS)
        self._something.clear()


def test_a_store_for_one_engine_has_nobody_to_tell(store: Driver) -> None:
    if store.companion("s2") is None:
        assert not store.store.shared
        store.run(tell_nobody(store.store))
    else:
        assert store.store.shared


async def tell_nobody(store: Store) -> None:
    listener = Listener(store)
    store.announce(FULL)
    listener.stop()
    assert listener.heard == []


def test_news_reach_the_others_in_full_but_not_the_sender(store: Driver) -> None:
    other = store.companion("s2")
    if other is not None:
        store.run(tell_each_other(store.store, other))


async def tell_each_other(one: Store, other: Store) -> None:
    listeners = [Listener(one), Listener(other)]
    one.announce(FULL)
    await listeners[1].wait()
    # By now the first would have heard its own news, and would hear them before these.
    other.announce(News(pokes=(3,)))
    await listeners[0].wait()
    assert listeners[0].heard == [News(pokes=(3,))]
    assert listeners[1].heard == [FULL]
    for listener in listeners:
        listener.stop()


def test_every_subscriber_hears_until_it_stops(store: Driver) -> None:
    other = store.companion("s2")
    if other is not None:
        store.run(stop_one_of_two(store.store, other))


async def stop_one_of_two(one: Store, other: Store) -> None:
    first, second = Listener(other), Listener(other)
    one.announce(News(pokes=(1,)))
    await first.wait()
    await second.wait()
    first.stop()
    first.stop()
    one.announce(News(pokes=(2,)))
    await second.wait()
    assert first.heard == [News(pokes=(1,))]
    assert second.heard == [News(pokes=(1,)), News(pokes=(2,))]
    second.stop()


def test_engines_side_by_side_see_the_same_data_and_count_apart(store: Driver) -> None:
    other = store.companion("s2")
    if other is None:
        return
    store.transact(lambda tx: tx.log.bump({"retries": 2}))
    store.run(_bump(other))
    assert store.transact(lambda tx: tx.log.counters()) == {"retries": 5}
    assert store.run(_snapshot(other)) == store.snapshot()


async def _bump(store: Store) -> None:
    await store.transact(lambda tx: tx.log.bump({"retries": 3}))


async def _snapshot(store: Store) -> object:
    return await store.snapshot()
