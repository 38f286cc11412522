"""Jobs that a running job submits: passed on to the server, and again while nobody answers.

None of its secrets goes with them: a name shows a mask, and what decides how a child runs is
refused if it contains one.
"""

from typing import Final

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput, Unreachable
from windlass.ports.clock import Clock
from windlass.ports.gateway import AttemptGateway, Holder
from windlass.wire.jobs import SubmitReply, SubmitRequest
from windlass.worker.attempt.output.masking import Mask

PAUSES_MS = (300, 1_000, 3_000, 10_000)
SHOWN: Final = ("name", "labels")  # what only people read


def conceal(request: SubmitRequest, mask: Mask) -> SubmitRequest:
    """Returns the request without secrets; raises `InvalidInput` where a mask would do harm."""
    jobs = [_conceal(job, mask, f"jobs[{n}]") for n, job in enumerate(request.jobs)]
    return msgspec.structs.replace(request, jobs=jobs, key=mask.value(request.key))


def _conceal(job: JobSpec, mask: Mask, field: str) -> JobSpec:
    given = msgspec.to_builtins(job)
    masked = mask.value(given)
    if masked == given:
        return job
    for name in given.keys() | masked.keys():
        if name not in SHOWN and given.get(name) != masked.get(name):
            expected = "without the value of a secret: a job that needs one names it in `secrets`"
            raise InvalidInput(f"{field}.{name}", expected, "one with it")
    return msgspec.structs.replace(job, **{name: masked.get(name) for name in SHOWN})


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
