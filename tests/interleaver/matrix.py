"""Every command against every other, on one state that has a bit of everything."""

from collections.abc import Iterator
from itertools import combinations_with_replacement

from tests.interleaver import commands as c
from tests.interleaver.commands import Command, new
from tests.interleaver.explore import Scene
from tests.interleaver.world import HOUR, MINUTE, World, job

NETWORK = "network"


async def bit_of_everything(world: World) -> None:
    """Jobs in every place and state, workers in every mood, and an intent not worked off."""
    for name in ("w1", "w2", "idle", "silent"):
        await world.worker(name)
    await _failures(world)
    await _running(world)
    await _waiting(world)
    await world.pass_time(HOUR // 2)
    for name in ("w1", "w2", "idle"):
        await world.sync(name)
    await world.sync("w2", finished=(world.finished("doom", "failed", failure="configuration"),))


async def _failures(world: World) -> None:
    """An aborted chain, a forgiven failure, and a job that will be left to an intent."""
    await world.submit(job("root"), job("pardon", allow_failure=True))
    await world.take("w1", "root", "pardon")
    root, pardon = world.jobs["root"], world.jobs["pardon"]
    await world.submit(job("leaf", after=(root,)), job("tip", after=(root,), key="tip"))
    await world.submit(job("runs", after=(pardon,)), job("pardoned", after=(pardon,), priority=-50))
    for name in ("root", "pardon"):
        await world.sync("w1", finished=(world.finished(name, "failed", failure="configuration"),))
    await world.cascade()
    await world.take("w2", "runs")
    await world.submit(job("doom"))
    await world.take("w2", "doom")
    doom = world.jobs["doom"]
    await world.submit(job("doomed", after=(doom,)), job("spared", after_any=(doom,)))


async def _running(world: World) -> None:
    """Parents, jobs under two keys, a workflow; assigned, canceling, and overdue ones."""
    await world.submit(
        job("p1"), job("k1", limit="k"), job("plain"), job("slow", timeout_ms=MINUTE)
    )
    await world.submit(job("step"), workflow="flow")
    await world.take("w1", "p1", "k1", "plain", "slow", "step")
    await world.submit(job("p2"), job("m1", "u", limit="m", most=2), job("stop"))
    await world.take("w2", "p2", "m1", "stop")
    await world.submit(job("given"))
    await world.take("w2", "given", prefetch=True)
    await world.submit(job("orphan", limit="m", most=2))
    await world.take("silent", "orphan")
    await world.run(c.cancel("stop"))
    await world.worker("gone")
    await world.submit(job("left", limit="l"))
    await world.take("gone", "left")
    await world.run(c.remove("gone", force=True))


async def _waiting(world: World) -> None:
    """Blocked, planned, parked and ready jobs."""
    ids = world.jobs
    both = ids["p1"], ids["p2"]
    await world.submit(job("join", after=both, limit="k"))
    await world.submit(job("join2", after=both[::-1], after_any=(ids["k1"],)))
    await world.submit(job("gated", after=both[:1], unblock="manual"))
    await world.submit(job("behind", after_any=(ids["gated"],), limit="m", most=2))
    await world.submit(job("planned", not_before=world.now + MINUTE, limit="k"))
    await world.submit(job("kept", not_before=world.now + MINUTE))
    await world.submit(
        job("k2", limit="k"), job("k3", "u", limit="k"), job("m2", limit="m", most=2)
    )
    await world.submit(job("r1"), job("r2", "u", key="r2"), job("r3", priority=5))


COMMANDS: dict[str, Command] = {
    "submit-plain": c.submit(new("n1"), new("n2", task="v")),
    "submit-after": c.submit(new("n", after=["p1", "p2"], after_any=["gated"])),
    "submit-after-failed": c.submit(new("n", after=["root"])),
    "submit-keys": c.submit(new("r2", task="u", key="r2"), new("n", key="a"), new("o", key="b")),
    "submit-limits": c.submit(new("n", limit="m", most=2), new("o", limit="k", after=["p1"])),
    "submit-more-slots": c.submit(new("n", limit="m", most=3), new("o", limit="k", most=1)),
    "submit-to-workflow": c.submit(new("n", workflow="flow", limit="k", after=["p2"])),
    "submit-workflow": c.submit(new("n", limit="k"), new("o", after=["join"]), workflow="g"),
    "claim": c.claim("idle"),
    "claim-many": c.claim("idle", 20),
    "claim-prefetch": c.claim("w2", 3, prefetch=True),
    "finish-p1": c.finish("w1", "p1"),
    "finish-p2-claim": c.finish("w2", "p2", want=2),
    "finish-many": c.finish("w1", "plain", "k1", "step", "p1", want=3),
    "finish-runs": c.finish("w2", "runs", "m1"),
    "fail": c.fail("w1", "p1"),
    "fail-network": c.fail("w2", "runs", NETWORK, want=1),
    "release": c.release("w2", "given", "busy"),
    "release-running": c.release("w1", "k1"),
    "start": c.start("w2", "given"),
    "audit": c.sync("w1", held=c.held("k1"), want=1),
    "activity": c.activity("w1", "slow"),
    "cancel-parents": c.cancel("p1", "join", "gated"),
    "cancel-waiting": c.cancel("planned", "k2", "r1", "doomed"),
    "cancel-leased": c.cancel("given", "k1", "runs", "slow"),
    "cancel-pardoned": c.cancel("pardoned", "kept"),
    "retry-root": c.retry("root"),
    "retry-pardon": c.retry("pardon"),
    "retry-doom": c.retry("doom"),
    "cancel-workflow": c.cancel_flow("flow"),
    "retry-workflow": c.retry_flow("flow"),
    "unblock": c.unblock("gated"),
    "reject": c.unblock("gated", accept=False),
    "adjust-ready": c.adjust("r1"),
    "adjust-parked": c.adjust("k2"),
    "adjust-blocked": c.adjust("join"),
    "adjust-due": c.adjust("planned"),
    "pause": c.pause(),
    "enrol-new": c.enrol("fresh"),
    "enrol-takeover": c.enrol("w2", takeover=True),
    "remove": c.remove("idle", force=True),
    "drain": c.drain("w1"),
    "label": c.label_worker("w2"),
    "advance": c.advance,
    "promote": c.promote,
    "refill": c.refill,
    "expire": c.expire,
    "overdue": c.overdue,
    "orphans": c.orphans,
    "hear": c.hear,
    "hot-submit": c.hot_submit(new("n1"), new("n2")),
    "hot-submit-key": c.hot_submit(new("n1"), key="once"),
    "hot-claim": c.hot_sync("idle", want=1),
    "hot-claim-many": c.hot_sync("idle", want=2, old=True),
    "hot-finish": c.hot_sync("w1", "plain"),
    "hot-finish-claim": c.hot_sync("w1", "plain", want=1),
    "hot-heartbeat": c.hot_sync("silent"),
    "sync-both": c.sync_both(("silent", {}), ("w2", {"want": 1})),
}


def scenes() -> Iterator[Scene]:
    """Each pair once, a command with itself included."""
    for one, other in combinations_with_replacement(COMMANDS, 2):
        pair = COMMANDS[one], COMMANDS[other]
        yield Scene(f"{one} × {other}", bit_of_everything, pair, serial=False)
