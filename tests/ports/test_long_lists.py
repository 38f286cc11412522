"""Long lists are freed in steps, wherever they go out of use."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from tests.support.running import run
from windlass.ports.loop_time import FREED, LongList, give_way, pages

MANY = 5 * FREED


class Item:
    """Something that is seen to go."""


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leaves the collector as it was, which the tests look at."""
    gc.enable()
    yield
    assert gc.isenabled()


def made() -> "tuple[LongList[Item], weakref.WeakSet[Item]]":
    items = LongList(Item() for _ in range(MANY))
    return items, weakref.WeakSet(items)


def test_a_long_list_is_freed_in_steps_without_the_collector() -> None:
    async def scenario() -> None:
        items, left = made()
        del items
        seen = [len(left)]
        while left:
            assert not gc.isenabled()
            await give_way()
            seen.append(len(left))
        assert seen == list(range(MANY - FREED, -1, -FREED))

    run(scenario())


def test_an_error_that_holds_the_list_leaves_it_to_the_loop_as_well() -> None:
    def fail() -> None:
        items, left = made()
        seen.append(left)
        raise ValueError(len(items))

    async def scenario() -> None:
        with pytest.raises(ValueError, match=str(MANY)) as caught:
            fail()
        assert len(seen[0]) == MANY
        del caught
        assert 0 < len(seen[0]) < MANY
        while seen[0]:
            await give_way()

    seen: list[weakref.WeakSet[Item]] = []
    run(scenario())


def test_in_a_thread_and_without_a_loop_it_is_freed_at_once() -> None:
    items, left = made()
    del items
    assert not left

    def work() -> int:
        items, left = made()
        del items
        return len(left)

    async def scenario() -> None:
        assert await asyncio.get_running_loop().run_in_executor(None, work) == 0

    run(scenario())


def test_pages_are_all_items_in_order() -> None:
    assert list(pages(range(5), 2)) == [range(2), range(2, 4), range(4, 5)]
    assert list(pages([])) == []
