"""Jobs that a running job submits: passed on to the server, and again while nobody answers."""

import msgspec

from windlass.domain.values.errors import Unreachable
from windlass.ports.clock import Clock
from windlass.ports.gateway import AttemptGateway, Holder
from windlass.wire.jobs import SubmitReply, SubmitRequest

PAUSES_MS = (300, 1_000, 3_000, 10_000)


async def submit(
    gateway: AttemptGateway, clock: Clock, holder: Holder, request: SubmitRequest, number: int
) -> SubmitReply:
    """Submits jobs; `number` distinguishes the calls of one attempt that have no key."""
    own = f"attempt {holder.job}.{holder.attempt}.{number}"
    key = own if request.key is None else f"key {request.key}"
    request = msgspec.structs.replace(request, key=key)
    for pause_ms in PAUSES_MS:
        try:
            return await gateway.submit(holder, request)
        except Unreachable:
            await clock.sleep_ms(pause_ms)
    return await gateway.submit(holder, request)
