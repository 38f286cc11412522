"""What the functions of jobs store and wait for, on its way to the server.

A result that could not be stored would be lost with the attempt, so we ask again until a server
answers or the attempt is stopped.
"""

from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from windlass.domain.values.errors import Overloaded, StoreUnavailable, TooManyRequests, Unreachable
from windlass.ports.gateway import Holder
from windlass.wire.steps import StepReply, StepRequest
from windlass.worker.attempt.output.masking import Mask
from windlass.worker.attempt.output.progress import Context

PAUSES_MS: Final = (100, 300, 1_000, 3_000)


def conceal(request: StepRequest, mask: Mask | None) -> StepRequest:
    """Returns the request with a mask in the place of each secret."""
    if mask is None:
        return request
    shown = ("key", "value", "name", "question", "schema")
    masked = {name: mask.value(getattr(request, name)) for name in shown}
    return msgspec.structs.replace(request, **masked)


async def ask(
    context: Context, holder: Holder, request: StepRequest, is_stopped: Callable[[], bool]
) -> StepReply:
    """Asks until a server answers."""
    for tries in count():
        try:
            return await context.gateway.step(holder, request)
        except TooManyRequests:
            raise
        except (Unreachable, StoreUnavailable, Overloaded):
            if is_stopped():
                raise
        await context.clock.sleep_ms(PAUSES_MS[min(tries, len(PAUSES_MS) - 1)])
    raise AssertionError("unreachable")
