"""The pairs of commands whose meeting has a story of its own."""

from tests.interleaver.commands import (
    adjust,
    advance,
    cancel,
    claim,
    drain,
    enrol,
    expire,
    fail,
    finish,
    new,
    overdue,
    pause,
    promote,
    refill,
    release,
    remove,
    retry,
    submit,
    sync,
    unblock,
)
from tests.interleaver.explore import Scene
from tests.interleaver.world import HOUR, MINUTE, World, job


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
    await world.submit(job("runs", after=(root,)))
    await world.sync("w1", finished=(world.finished("root", "failed", failure="configuration"),))
    await world.take("w2", "runs")
    await world.submit(job("queued", after=(root,)))
    await world.submit(job("later", after=(world.jobs["queued"],)))


async def retried(world: World) -> None:
    """The forgiven failure retried by hand, its dependents not yet in line."""
    await forgiven(world)
    hand = world._stage.hand
    await hand.run(retry("root")(world))
    snapshot = await world._stage.store.snapshot()
    world.jobs["root'"] = max(row.facts.id for row in snapshot.jobs)


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
    hand = world._stage.hand
    await hand.run(cancel("early")(world))
    await hand.run(retry("early")(world))
    await world.cascade()
    snapshot = await world._stage.store.snapshot()
    world.jobs["early'"] = max(row.facts.id for row in snapshot.jobs)


async def audited(world: World) -> None:
    """A worker holds two jobs, one of them under a key, and will say that it lost the other."""
    await slot_taken(world)
    await world.submit(job("plain", "u"))
    await world.take("w1", "plain")


def _held(*labels: str):  # type: ignore[no-untyped-def]
    return lambda world: tuple(
        __import__("windlass.wire.sync", fromlist=["Held"]).Held(
            world.held[n].job, world.held[n].attempt
        )
        for n in labels
    )


SCENES = (
    Scene("submit-complete", parents, (submit(new("n", after=["p1"])), finish("w1", "p1"))),
    Scene("submit-fail", parents, (submit(new("n", after=["p1"])), fail("w1", "p1"))),
    Scene("submit-cancel", parents, (submit(new("n", after=["join"])), cancel("join"))),
    Scene("submit-cancel-running", parents, (submit(new("n", after=["p1"])), cancel("p1"))),
    Scene("submit-submit", parents,
          (submit(new("n", after=["p1", "p2"])), submit(new("o", after=["p2", "join"])))),
    Scene("claim-cancel", ready_jobs, (claim("w1", 2), cancel("one")), serial=False),
    Scene("claim-claim", ready_jobs, (claim("w1"), claim("w2")), serial=False),
    Scene("claim-claim-two", ready_jobs, (claim("w1", 2), claim("w2", 2)), serial=False),
    Scene("claim-submit", ready_jobs, (claim("w1", 3), submit(new("n"))), serial=False),
    Scene("claim-adjust", ready_jobs, (claim("w1"), adjust("one")), serial=False),
    Scene("claim-pause", ready_jobs, (claim("w1"), pause()), serial=False),
    Scene("claim-drain", ready_jobs, (claim("w1"), drain("w1"))),
    Scene("finish-expire", lost_worker, (finish("w1", "run"), expire)),
    Scene("fail-expire", lost_worker, (fail("w1", "run", "network"), expire)),
    Scene("sync-expire", lost_worker, (claim("w1"), expire)),
    Scene("finish-cancel", one_running, (finish("w1", "run"), cancel("run"))),
    Scene("finish-cancel-parent", parents, (finish("w1", "p1"), cancel("p1", "join"))),
    Scene("finish-finish-join", parents, (finish("w1", "p1"), finish("w2", "p2"))),
    Scene("finish-fail-join", parents, (finish("w1", "p1"), fail("w2", "p2"))),
    Scene("finish-overdue", timed_out, (finish("w1", "run"), overdue)),
    Scene("finish-takeover", one_running, (finish("w1", "run"), enrol("w1", takeover=True))),
    Scene("finish-remove", one_running, (finish("w1", "run"), remove("w1"))),
    Scene("claim-remove", one_running, (claim("w2"), remove("w2"))),
    Scene("finish-remove-forced", one_running, (finish("w1", "run"), remove("w1", force=True))),
    Scene("enrol-enrol", one_running, (enrol("new"), enrol("new"))),
    Scene("unblock-finish", by_hand, (unblock("gated"), finish("w1", "run"))),
    Scene("unblock-cancel", by_hand, (unblock("gated"), cancel("gated"))),
    Scene("reject-finish", by_hand, (unblock("gated", accept=False), finish("w1", "run"))),
    Scene("reject-cancel", by_hand, (unblock("gated", accept=False), cancel("gated", "behind"))),
    Scene("retry-retry", chain_failed, (retry("root"), retry("root"))),
    Scene("retry-finish", chain_failed, (retry("root"), finish("w2", "side"))),
    Scene("retry-submit", chain_failed, (retry("root"), submit(new("n", after=["root"])))),
    Scene("retry-advance", chain_failing, (retry("root"), advance)),
    Scene("cancel-advance", chain_failing, (cancel("leaf", "below"), advance)),
    Scene("revive-claim", retried, (advance, claim("w1", 2)), serial=False),
    Scene("revive-finish", retried, (advance, finish("w2", "runs"))),
    Scene("revive-fail", retried, (advance, fail("w2", "runs", "network"))),
    Scene("revive-release", retried, (advance, release("w2", "runs"))),
    Scene("revive-cancel", retried, (advance, cancel("queued", "runs"))),
    Scene("revive-cancel-new", retried, (advance, cancel("root'"))),
    Scene("advance-advance", two_failures, (advance, advance), serial=False),
    Scene("turned-finish-cancel", turned_order, (finish("w1", "run"), cancel("early'"))),
    Scene("turned-finish-cancel-both", turned_order,
          (finish("w1", "run"), cancel("early'", "late"))),
    Scene("limit-claim-claim", two_shapes, (claim("w1"), claim("w2")), serial=False),
    Scene("limit-finish-submit-claim", slot_taken,
          (finish("w1", "has"), submit(new("n", limit="k")), claim("w2")), serial=False),
    Scene("limit-finish-claim", slot_taken, (finish("w1", "has"), claim("w2")), serial=False),
    Scene("limit-cancel-submit", slot_free, (cancel("first"), submit(new("n", limit="k")))),
    Scene("limit-finish-cancel", slot_taken, (finish("w1", "has"), cancel("first"))),
    Scene("limit-refill-cancel", slot_free, (cancel("first"), cancel("second"))),
    Scene("limit-finish-adjust", slot_taken, (finish("w1", "has"), adjust("second"))),
    Scene("limit-refill-adjust", slot_taken, (refill, adjust("first"))),
    Scene("limits-crossed-finish", crossed_limits, (finish("w1", "k1"), finish("w2", "m1"))),
    Scene("limits-crossed-sync", crossed_claims,
          (finish("w1", "k1", want=1), finish("w2", "m1", want=1)), serial=False),
    Scene("limits-claim-claim", crossed_claims, (claim("w1", 2), claim("w2", 2)), serial=False),
    Scene("limit-workflow", limited_workflow,
          (finish("w1", "last"), submit(new("n", workflow="flow", limit="k")))),
    Scene("audit-cancel", audited,
          (sync("w1", held=_held("has")), cancel("plain", "first"))),
    Scene("audit-finish-cancel", audited,
          (sync("w1", held=_held(), finished=lambda w: (w.finished("has"),)),
           cancel("plain", "first"))),
    Scene("due-promote-cancel-adjust", due_jobs, (promote, cancel("soon"), adjust("then"))),
    Scene("due-claim-cancel", due_jobs, (claim("w1", 2), cancel("soon")), serial=False),
    Scene("due-promote-promote", due_jobs, (promote, promote), serial=False),
    Scene("key-key", one_running, (submit(new("n", key="x")), submit(new("n", key="x")))),
    Scene("keys-crossed", one_running,
          (submit(new("n", key="x"), new("o", key="y")),
           submit(new("o", key="y"), new("n", key="x")))),
    Scene("workflow-add-finish", workflow, (submit(new("n", workflow="flow")), finish("w1", "last"))),
)  # fmt: skip
