"""Intents are worked off, also one that comes while the last look for more is under way."""

import asyncio

from tests.support.running import run
from windlass.engine.workflows import CascadeRunner


def test_what_comes_during_the_last_look_is_not_left() -> None:
    async def play() -> list[str]:
        done: list[str] = []
        waiting: list[str] = ["first"]
        looked, go_on = asyncio.Event(), asyncio.Event()

        async def step() -> bool:
            if waiting:
                done.append(waiting.pop())
                return True
            looked.set()
            await go_on.wait()  # it has seen nothing, and not yet said so
            return False

        work = CascadeRunner(step)
        work.start()
        await looked.wait()
        waiting.append("second")
        work.start()
        go_on.set()
        await work.settled()
        return done

    assert run(play()) == ["first", "second"]


def test_an_engine_that_stops_waits_for_one_step_and_not_for_the_rest() -> None:
    """A server must be able to end while 100,000 jobs are being retried."""

    async def play() -> int:
        done = 0
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def step() -> bool:
            nonlocal done
            begun.set()
            await go_on.wait()
            done += 1
            return done < 1_000

        work = CascadeRunner(step)
        work.start()
        await begun.wait()
        work.stop()
        go_on.set()
        await work.settled()
        return done

    assert run(play()) == 1
