"""Checks a store and renders what was found, for servers and for the command without one."""

from windlass.domain.config import Config
from windlass.engine.fleet.losses import describe, known_losses
from windlass.engine.verify import verify
from windlass.ports.store import Store
from windlass.wire.system import Verified, ViolationInfo


async def check(store: Store, config: Config) -> Verified:
    """Returns the violations of a store, and the losses that it knows of."""
    found = await verify(store, config)
    losses = await store.read(known_losses)
    return Verified(
        [ViolationInfo(v.invariant, v.message, v.job, v.seq) for v in found],
        [describe(gap) for gap in losses],
    )
