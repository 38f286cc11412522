"""The interleaver itself: it keeps to its schedule, and it sees planted bugs."""

import pytest

from tests.interleaver.commands import (
    Command,
    cancel,
    claim,
    finish,
    hot_submit,
    hot_sync,
    new,
    submit,
)
from tests.interleaver.conftest import Theatre
from tests.interleaver.explore import Scene
from tests.interleaver.schedules import Seeded, Turns, parse
from tests.interleaver.settings import one_running, parents, slot_taken
from tests.interleaver.stage import HotStep, Step
from tests.interleaver.world import World, job
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.domain.values.ids import JobId
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.unit_of_work import Work


def test_a_written_schedule_is_kept_to_the_statement(theatre: Theatre) -> None:
    scene = Scene("plain", one_running, (finish("w1", "run"), claim("w2")), serial=False)

    async def play() -> None:
        done = await theatre.explorer.repeat(scene, Turns("a3 b a"))
        order = "".join(step[0] for step in done.trace)
        assert order == "a" * 3 + "b" * done.steps[1] + "a" * (done.steps[0] - 3)
        assert done.trace[:4] == ("a:begin", "a:now", "a:lock_workers", "b:begin")

    theatre.run(play())


def test_a_hot_command_is_one_step(theatre: Theatre) -> None:
    pairs = (
        (hot_sync("w1", "run"), hot_sync("w2", want=1)),
        (hot_submit(new("n"), key="k"), hot_sync("w2", want=1, old=True)),
    )

    async def play() -> None:
        for commands in pairs:
            scene = Scene("hot", one_running, commands, serial=False)
            done = await theatre.explorer.repeat(scene, Turns("a b"))
            assert done.steps == (1, 1), done.trace

    theatre.run(play())


def test_a_hot_command_with_rare_options_takes_the_normal_path(theatre: Theatre) -> None:
    scene = Scene("tied", parents, (hot_sync("w1", "p1"), hot_sync("w2")), serial=False)

    async def play() -> None:
        done = await theatre.explorer.repeat(scene, Turns("a b"))
        assert done.trace[:2] == ("a:sync_plain", "a:begin")
        assert done.steps[1] == 1

    theatre.run(play())


def test_a_seed_can_be_repeated(theatre: Theatre) -> None:
    scene = Scene("join", parents, (finish("w1", "p1"), finish("w2", "p2")))

    async def play() -> None:
        first = await theatre.explorer.repeat(scene, Seeded(7))
        again = await theatre.explorer.repeat(scene, parse(first.schedule))
        assert first.trace == again.trace

    theatre.run(play())


def test_a_statement_that_waits_for_a_lock_gives_the_turn_away(theatre: Theatre) -> None:
    scene = Scene("cancel", one_running, (cancel("run"), finish("w1", "run")))

    async def play() -> None:
        done = await theatre.explorer.repeat(scene, Turns("a3 b a"))
        assert "b:lock_untied_jobs(waits)" in done.trace
        assert done.trace.index("b:lock_untied_jobs(waits)") < done.trace.index("a:commit")

    theatre.run(play())


def _lock_both(first: str, second: str) -> Command:
    """A planted bug: jobs are locked one by one, in an order of its own."""

    def make(world: World) -> Step[object]:
        async def run(work: Work, bounds: Bounds) -> None:
            await work.tx.jobs.lock([world.jobs[first]])
            await work.tx.jobs.lock([world.jobs[second]])

        return run

    return make


def test_a_deadlock_is_seen_although_it_is_retried(theatre: Theatre) -> None:
    crossed = _lock_both("run", "next"), _lock_both("next", "run")
    scene = Scene("crossed", one_running, crossed)
    with pytest.raises(AssertionError, match=r"crossed \[a3 b a\]\n1 deadlocks"):
        theatre.run(theatre.explorer.repeat(scene, Turns("a3 b a")))


def _drop_silently(world: World) -> Step[object]:
    """A planted bug: a job under a limit ends, and nobody moves up."""

    async def run(work: Work, bounds: Bounds) -> None:
        has = world.jobs["has"]
        facts = (await work.tx.jobs.lock([has]))[has]
        lease = (await work.tx.leases.lock([has]))[has]
        await work.tx.leases.drop([has])
        assert facts.limit is not None
        await work.tx.limits.bump({facts.limit: -1})
        work.move(
            JobId(has), facts.shape, None, lease.attempt, lease.state, State.CANCELING.code,
            worker=lease.worker, incarnation=lease.incarnation,
        )  # fmt: skip

    return run


def test_a_slot_that_nobody_takes_is_seen(theatre: Theatre) -> None:
    scene = Scene("leak", slot_taken, (_drop_silently, claim("w2")))
    with pytest.raises(AssertionError, match="is parked under limit 1, which has a free slot"):
        theatre.run(theatre.explorer.repeat(scene, Turns("a b")))


def _hide(world: World) -> Step[object]:
    """A planted bug: what a transaction made ready, it tells nobody."""

    async def run(work: Work, bounds: Bounds) -> object:
        step = submit(_new)(world)
        assert not isinstance(step, HotStep)
        answer = await step(work, bounds)
        work.effects.arrivals.clear()
        return answer

    return run


def _new(world: World) -> JobSpec:
    return job("n", "other")


def test_a_lost_wake_up_is_seen(theatre: Theatre) -> None:
    scene = Scene("hidden", one_running, (claim("w2", 2), _hide), serial=False)
    with pytest.raises(AssertionError, match="is ready, a worker waits, and nobody wakes it"):
        theatre.run(theatre.explorer.repeat(scene, Turns("a b")))
