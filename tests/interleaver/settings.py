"""The worlds in which pairs of commands meet."""

from typing import Any

from tests.interleaver.commands import (
    ask,
    cancel,
    cancel_flow,
    expire,
    hear,
    retry,
    retry_flow,
    send,
    suspend,
    wait_for,
)
from tests.interleaver.world import HOUR, MINUTE, SECOND, World, job
from windlass.domain.matching.shapes import Rate


async def one_running(world: World) -> None:
    """One job that runs, one that is ready, and an idle worker."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("run"))
    await world.take("w1", "run")
    await world.submit(job("next"))


async def ready_jobs(world: World) -> None:
    """Two ready jobs of different shapes, two idle workers."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("one"))
    await world.submit(job("two", "u"))


async def parents(world: World) -> None:
    """Two parents on two workers, and two joins that wait for both."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("p1"))
    await world.take("w1", "p1")
    await world.submit(job("p2"))
    await world.take("w2", "p2")
    both = world.jobs["p1"], world.jobs["p2"]
    await world.submit(job("join", after=both))
    await world.submit(job("other", after=both[::-1]))


async def lending(world: World) -> None:
    """A job that inherits from one that waits for it, and another that is about to."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("base", priority=-9), job("other"))
    base = world.jobs["base"]
    await world.submit(job("lends", after=(base,), priority=9))
    await world.cascade()
    await world.submit(job("better", after=(base,), priority=20))


async def too_late(world: World) -> None:
    """Jobs whose deadlines have passed: one ready, one running, one that waits for it."""
    await world.worker("w1")
    await world.worker("w2")
    soon = world.now + SECOND
    await world.submit(job("runs", finish_before=soon, timeout_ms=10 * MINUTE))
    await world.take("w1", "runs")
    await world.submit(job("ready", start_before=soon))
    await world.submit(job("behind", after=(world.jobs["runs"],), start_before=soon))
    await world.pass_time(2 * SECOND)


async def hopeless(world: World) -> None:
    """Jobs that neither worker can run, one under a limit, and one that waits for them."""
    await world.worker("w1")
    await world.worker("w2")
    wants: dict[str, Any] = {"requires": ("wings>=2",), "capability_grace_ms": 0}
    await world.submit(job("one", **wants), job("two", limit="k", **wants))
    await world.submit(job("after", after=(world.jobs["one"], world.jobs["two"])))


async def lost_worker(world: World) -> None:
    """A worker that has been silent for too long, though it still has a job."""
    await one_running(world)
    await world.pass_time(10 * MINUTE)


async def timed_out(world: World) -> None:
    """A job past its deadline, whose agent is about to report."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("run", timeout_ms=60_000))
    await world.take("w1", "run")
    await world.pass_time(HOUR)


async def by_hand(world: World) -> None:
    """A job that waits for an operator and for a job that runs."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("run"))
    await world.take("w1", "run")
    await world.submit(job("gated", after=(world.jobs["run"],), unblock="manual"))
    await world.submit(job("behind", after_any=(world.jobs["gated"],)))


async def chain_failed(world: World) -> None:
    """A failed job that aborted its dependent, and a job that runs beside it."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("side"))
    await world.take("w2", "side")
    await world.submit(job("root"))
    await world.take("w1", "root")
    root = world.jobs["root"]
    await world.submit(job("leaf", after=(root,), after_any=(world.jobs["side"],)))
    await world.submit(job("tip", after=(root,)))
    await world.sync("w1", finished=(world.finished("root", "failed", failure="configuration"),))
    await world.cascade()


async def chain_failing(world: World) -> None:
    """The same before the intent was worked off."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("root"))
    await world.take("w1", "root")
    root = world.jobs["root"]
    await world.submit(job("leaf", after=(root,)), job("tip", after=(root,)))
    await world.submit(job("below", after_any=(world.jobs["leaf"],)))
    await world.sync("w1", finished=(world.finished("root", "failed", failure="configuration"),))


async def forgiven(world: World) -> None:
    """A failure that was allowed: its dependents went on, one queued and one running."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("root", allow_failure=True))
    await world.take("w1", "root")
    root = world.jobs["root"]
    await world.submit(job("runs", after=(root,)), job("queued", after=(root,)))
    await world.sync("w1", finished=(world.finished("root", "failed", failure="configuration"),))
    await world.take("w2", "runs")
    await world.submit(job("later", after=(world.jobs["queued"],)))


async def retried(world: World) -> None:
    """The forgiven failure retried by hand, its dependents not yet in line."""
    await forgiven(world)
    await world.run(retry("root"))
    await world.name_newest("root'")


async def kept(world: World) -> None:
    """The retry runs, and so does still a dependent, which keeps a wait for it."""
    await retried(world)
    await world.cascade()
    await world.take("w1", "root'")


async def fallen_silent(world: World) -> None:
    """One worker was marked and is about to be given up, a younger one is about to be marked."""
    await one_running(world)
    await world.pass_time(MINUTE)
    await world.sync("w2")
    await world.run(expire)
    await world.pass_time(50 * SECOND)


async def two_shapes(world: World) -> None:
    """One slot under a key, and jobs of two shapes that want it."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("t1", limit="k"), job("t2", limit="k"))
    await world.submit(job("u1", "u", limit="k"), job("u2", "u", limit="k"))


async def slot_taken(world: World) -> None:
    """One slot under a key, taken; two jobs parked behind it."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("has", limit="k"))
    await world.take("w1", "has")
    await world.submit(job("first", limit="k"), job("second", limit="k"))


async def slot_free(world: World) -> None:
    """One slot under a key, and a ready job for it."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("first", limit="k"), job("second", limit="k"))


async def queue_slot_free(world: World) -> None:
    """A queue of which one job may run, and jobs of two shapes for it."""
    await world.worker("w1")
    await world.worker("w2")
    await world.limit(1)
    await world.submit(job("t1"), job("u1", "u"), job("t2", limit="k"))


async def queue_slot_taken(world: World) -> None:
    """A queue of which one job may run, which does; others wait, one of them under a key."""
    await world.worker("w1")
    await world.worker("w2")
    await world.limit(1)
    await world.submit(job("has"))
    await world.take("w1", "has")
    await world.submit(job("first", limit="k"), job("second", "u"))


async def lost_in_queue(world: World) -> None:
    """The only place of a queue is held by a worker that fell silent."""
    await queue_slot_taken(world)
    await world.pass_time(2 * MINUTE)
    await world.sync("w2")
    await world.run(hear)
    await world.pass_time(2 * MINUTE)
    await world.sync("w2")


async def queues_crossed(world: World) -> None:
    """Two queues with two places, and each worker ends a job of one of them."""
    await world.worker("w1")
    await world.worker("w2")
    await world.limit(2, "a")
    await world.limit(2, "b")
    await world.submit(job("a1", queue="a"))
    await world.take("w1", "a1")
    await world.submit(job("b1", queue="b"))
    await world.take("w2", "b1")
    await world.submit(job("b2", queue="b"), job("a2", queue="a", limit="k"))


async def rated(world: World) -> None:
    """Two keys under rates that let one job start an hour, and jobs of two shapes for each."""
    await world.worker("w1")
    await world.worker("w2")
    rates = {key: Rate(key, 1, HOUR // 2) for key in "rs"}
    for key, rate in rates.items():
        await world.submit(job(f"{key}0", rate=rate))
        await world.take("w1", f"{key}0")
        await world.finish("w1", f"{key}0")
    await world.pass_time(HOUR)
    for key, rate in rates.items():
        await world.submit(job(f"{key}1", rate=rate), job(f"{key}2", "u", rate=rate))


async def crossed_limits(world: World) -> None:
    """Two keys; each is held by a job whose dependent wants the other."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("k1", limit="k"))
    await world.take("w1", "k1")
    await world.submit(job("m1", limit="m"))
    await world.take("w2", "m1")
    await world.submit(job("m2", limit="m", after=(world.jobs["k1"],)))
    await world.submit(job("k2", limit="k", after=(world.jobs["m1"],)))


async def crossed_claims(world: World) -> None:
    """Two keys with two slots; each worker ends a job of one and may take one of the other."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("k1", "a", limit="k", most=2))
    await world.take("w1", "k1")
    await world.submit(job("m1", "b", limit="m", most=2))
    await world.take("w2", "m1")
    await world.submit(job("m2", "b", limit="m", most=2), job("k2", "a", limit="k", most=2))


async def limited_workflow(world: World) -> None:
    """A workflow under a key: its last job runs."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("last", limit="k"), workflow="flow")
    await world.take("w1", "last")


async def due_jobs(world: World) -> None:
    """Two planned jobs whose time has come."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(
        job("soon", not_before=world.now + MINUTE), job("then", not_before=world.now + MINUTE)
    )
    await world.pass_time(HOUR // 2)


async def workflow(world: World) -> None:
    """A workflow whose last job runs."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("last"), workflow="flow")
    await world.take("w1", "last")


async def flow_under_way(world: World) -> None:
    """A workflow with jobs in most places, one that failed, and one outside that waits for it."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("runs"), job("failed"), workflow="flow")
    await world.take("w1", "runs", "failed")
    await world.sync("w1", finished=(world.finished("failed", "failed", failure="configuration"),))
    flow, runs = world.workflows["flow"], world.jobs["runs"]
    await world.submit(job("ready", workflow=flow), job("limited", workflow=flow, limit="k"))
    await world.submit(job("parked", workflow=flow, limit="k"))
    await world.submit(job("blocked", workflow=flow, after=(runs,)))
    await world.submit(job("outside", after=(runs, world.jobs["ready"])))
    await world.submit(job("any", after_any=(world.jobs["blocked"],)))


async def flow_canceling(world: World) -> None:
    """The same when the command has committed, and nothing has been stopped yet."""
    await flow_under_way(world)
    await world.run(cancel_flow("flow"))


async def flow_retried(world: World) -> None:
    """The same when its failed jobs are to be tried again."""
    await flow_under_way(world)
    await world.run(retry_flow("flow"))


async def two_failures(world: World) -> None:
    """Two intents, whose jobs share a dependent; each also has one that waits for any end."""
    await world.worker("w1")
    await world.submit(job("f1"), job("f2"))
    await world.take("w1", "f1", "f2")
    both = world.jobs["f1"], world.jobs["f2"]
    await world.submit(job("shared", after=both), job("own", after=both[:1]))
    await world.submit(job("any", after_any=(world.jobs["shared"], world.jobs["own"])))
    await world.sync(
        "w1",
        finished=tuple(world.finished(n, "failed", failure="configuration") for n in ("f1", "f2")),
    )


async def turned_order(world: World) -> None:
    """A retried job waits with its own dependent for one that runs: the younger comes first."""
    await world.worker("w1")
    await world.worker("w2")
    await world.submit(job("run"))
    await world.take("w1", "run")
    run = world.jobs["run"]
    await world.submit(job("early", after=(run,)))
    await world.submit(job("late", after=(run,), after_any=(world.jobs["early"],)))
    await world.run(cancel("early"))
    await world.run(retry("early"))
    await world.cascade()
    await world.name_newest("early'")


async def audited(world: World) -> None:
    """A worker holds two jobs, one of them under a key, and will say that it lost the other."""
    await slot_taken(world)
    await world.submit(job("plain", "u"))
    await world.take("w1", "plain")


async def about_to_wait(world: World) -> None:
    """Two functions that have asked: for a signal and for an answer, under one limit."""
    await world.worker("w1")
    await world.submit(job("run", limit="k", most=2), job("asks", limit="k", most=2))
    await world.take("w1", "run", "asks")
    await world.run(wait_for("w1", "run"))
    await world.run(ask("w1", "asks"))


async def sent_while_asking(world: World) -> None:
    """The same, and the signal is stored; nobody has been told of it."""
    await about_to_wait(world)
    await world.run(send())


async def waiting_inside(world: World) -> None:
    """The same, suspended; their time is up now, to the millisecond."""
    await about_to_wait(world)
    for label in ("run", "asks"):
        await world.run(suspend("w1", label))
    await world.pass_time(MINUTE)


async def sent_while_waiting(world: World) -> None:
    """The same, and the signal is stored; nobody has been told of it."""
    await waiting_inside(world)
    await world.run(send())
