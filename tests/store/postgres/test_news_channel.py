"""NOTIFY and LISTEN: what is put together, how large a message gets, and coming back."""

import asyncio
from itertools import pairwise

import pytest

from tests.store.postgres.conftest import OpenStore
from tests.support.running import run
from windlass.assembly import stores
from windlass.domain.config import Config
from windlass.store.postgres.connections import open_connection
from windlass.store.postgres.news import (
    INTERVAL_MS,
    PAYLOADS,
    Herald,
    by_shape,
    merge,
    payloads,
)
from windlass.store.store import News


def test_news_of_one_moment_are_one_message() -> None:
    async def check() -> None:
        sent: list[list[str]] = []
        delivered = asyncio.Event()

        async def send(texts: list[str]) -> None:
            sent.append(texts)
            delivered.set()

        herald = Herald("s1", send)
        for number in range(100):
            herald.announce(News(pokes=(number,)))
        await delivered.wait()
        assert sent == [payloads("s1", News(pokes=tuple(range(100))))]
        await herald.close()

    run(check())


@pytest.mark.parametrize("interval_ms", [INTERVAL_MS, 60])
def test_messages_keep_their_distance(interval_ms: int) -> None:
    async def check() -> None:
        loop = asyncio.get_running_loop()
        times: list[float] = []
        sending = asyncio.Event()

        async def send(texts: list[str]) -> None:
            times.append(loop.time())
            sending.set()

        herald = Herald("s1", send, interval_ms)
        for _ in range(4):
            sending.clear()
            herald.announce(News(catalog=True))
            await sending.wait()
        gaps = [later - earlier for earlier, later in pairwise(times)]
        # A timer may be early by as much as the loop's clock is coarse.
        assert all(gap > 0.9 * interval_ms / 1000 for gap in gaps)
        await herald.close()

    run(check())


def test_what_is_announced_while_sending_goes_with_the_next_message() -> None:
    async def check() -> None:
        sent: list[list[str]] = []
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def send(texts: list[str]) -> None:
            sent.append(texts)
            arrived.set()
            await go_on.wait()

        herald = Herald("s1", send)
        herald.announce(News(due_at=5))
        await arrived.wait()
        herald.announce(News(due_at=9))
        herald.announce(News(due_at=7, catalog=True))
        go_on.set()
        await herald.close()
        assert sent == [payloads("s1", News(due_at=5)), payloads("s1", News((), (), 7, True))]

    run(check())


def test_merged_news_say_what_both_said() -> None:
    one = News(((1, 5, 6, 2),), (1, 2), 0, False)
    two = News(((1, 4, 9, 1),), (2, 3), 8, True)
    assert merge(one, two) == News(((1, 5, 6, 2), (1, 4, 9, 1)), (1, 2, 3), 8, True)


def test_too_many_arrivals_are_told_by_shape() -> None:
    arrivals = tuple((n % 3, 10**12 - n, 10**9 + n, 2) for n in range(1_000))
    assert len(payloads("s1", News(arrivals))) == 1
    assert by_shape(arrivals) == (
        (0, 10**12 - 999, 10**9 + 999, 668),
        (1, 10**12 - 997, 10**9 + 997, 666),
        (2, 10**12 - 998, 10**9 + 998, 666),
    )


def test_no_message_is_too_large_for_postgresql() -> None:
    low, high = -(2**63), 2**63 - 1
    news = News(
        tuple((n, low, high, high) for n in range(10_000)), tuple(range(high - 900, high)), high
    )
    texts = payloads("a-server-with-a-long-name", news)
    assert len(texts) == PAYLOADS
    assert max(map(len, texts)) < 8_000


def test_a_broken_listener_comes_back_and_says_so(open_store: OpenStore, postgres_dsn: str) -> None:
    async def check() -> None:
        async with open_store("s1") as one, open_store("s2") as two:
            heard: asyncio.Queue[News] = asyncio.Queue()
            two.subscribe(heard.put_nowait)
            connection = await open_connection(postgres_dsn)
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
            await connection.close()
            assert await heard.get() == News(catalog=True)
            one.announce(News(pokes=(4,)))
            assert await heard.get() == News(pokes=(4,))

    run(check())


def test_the_option_says_how_often_others_are_told(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check() -> None:
        async with open_store("s2") as two, open_store("s3") as three:
            heard: asyncio.Queue[News] = asyncio.Queue()
            two.subscribe(heard.put_nowait)
            one = await stores.open_store(postgres_dsn, Config(notify_interval_ms=600_000))
            one.announce(News(due_at=1))
            assert await heard.get() == News(due_at=1)
            one.announce(News(due_at=2))
            for number in (3, 4, 5, 6):  # others speak meanwhile, some milliseconds apart
                three.announce(News(due_at=number))
                assert await heard.get() == News(due_at=number)
            await one.close()
            assert await heard.get() == News(due_at=2)

    run(check())


def test_what_others_say_on_the_channel_is_passed_over(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check() -> None:
        async with open_store("s1") as one, open_store("s2") as two:
            heard: asyncio.Queue[News] = asyncio.Queue()
            two.subscribe(heard.put_nowait)
            connection = await open_connection(postgres_dsn)
            await connection.execute("NOTIFY windlass, 'hello'")
            await connection.close()
            one.announce(News(due_at=3))
            assert await heard.get() == News(due_at=3)

    run(check())
