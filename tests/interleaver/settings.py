"""The worlds in which pairs of commands meet."""

from tests.interleaver.commands import cancel, cancel_flow, expire, retry, retry_flow
from tests.interleaver.world import HOUR, MINUTE, SECOND, World, job


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
