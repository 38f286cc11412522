"""A running job's requests to the server: durable steps, signals, and jobs of its own.

A result that could not be stored would be lost with the attempt, so a step is sent again until a
server answers or the attempt is stopped. A submission is repeated while nobody answers. Secrets are
never part of either: they are masked, and options that decide how a child runs are refused if they
contain one.
"""

from collections.abc import Callable
from itertools import count
from typing import Final

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import (
    InvalidInput,
    Overloaded,
    StoreUnavailable,
    TooManyRequests,
    Unreachable,
)
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.ports.clock import Clock
from windlass.ports.gateway import AttemptGateway, Holder
from windlass.worker.attempt.masking import Mask
from windlass.worker.attempt.progress import Context

STEP_PAUSES_MS: Final = (100, 300, 1_000, 3_000)


def conceal_step(request: StepRequest, mask: Mask | None) -> StepRequest:
    """Returns the request with each secret masked."""
    if mask is None:
        return request
    shown = ("key", "value", "name", "question", "schema")
    masked = {name: mask.value(getattr(request, name)) for name in shown}
    return msgspec.structs.replace(request, **masked)


async def ask_step(
    context: Context, holder: Holder, request: StepRequest, is_stopped: Callable[[], bool]
) -> StepReply:
    """Sends the request until a server answers."""
    for tries in count():
        try:
            return await context.gateway.step(holder, request)
        except TooManyRequests:
            raise
        except (Unreachable, StoreUnavailable, Overloaded):
            if is_stopped():
                raise
        await context.clock.sleep_ms(STEP_PAUSES_MS[min(tries, len(STEP_PAUSES_MS) - 1)])
    raise AssertionError("unreachable")


CHILD_PAUSES_MS = (300, 1_000, 3_000, 10_000)
SHOWN: Final = ("name", "labels")  # fields that only people read


def conceal_children(request: SubmitRequest, mask: Mask) -> SubmitRequest:
    """Returns the request without secrets; raises `InvalidInput` where a mask would do harm."""
    jobs = [_conceal_child(job, mask, f"jobs[{n}]") for n, job in enumerate(request.jobs)]
    return msgspec.structs.replace(request, jobs=jobs, key=mask.value(request.key))


def _conceal_child(job: JobSpec, mask: Mask, field: str) -> JobSpec:
    given = msgspec.to_builtins(job)
    masked = mask.value(given)
    if masked == given:
        return job
    for name in given.keys() | masked.keys():
        if name not in SHOWN and given.get(name) != masked.get(name):
            expected = "without the value of a secret: a job that needs one names it in `secrets`"
            raise InvalidInput(f"{field}.{name}", expected, "a text with one")
    return msgspec.structs.replace(job, **{name: masked.get(name) for name in SHOWN})


async def submit_children(
    gateway: AttemptGateway, clock: Clock, holder: Holder, request: SubmitRequest, number: int
) -> SubmitReply:
    """Submits jobs; `number` distinguishes the calls of one attempt that have no key."""
    own = f"attempt {holder.job}.{holder.attempt}.{number}"
    key = own if request.key is None else f"key {request.key}"
    request = msgspec.structs.replace(request, key=key)
    for pause_ms in CHILD_PAUSES_MS:
        try:
            return await gateway.submit(holder, request)
        except Unreachable:
            await clock.sleep_ms(pause_ms)
    return await gateway.submit(holder, request)
