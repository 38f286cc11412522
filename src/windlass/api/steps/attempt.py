"""Carries out what the functions of running jobs ask for."""

from typing import Final, assert_never

import msgspec

from windlass.api.queries import Queries
from windlass.domain.access.rights import Identity, Role
from windlass.domain.rows.steps import StepRow, StepState
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.engine.engine import Engine
from windlass.ports.gateway import Holder
from windlass.wire.steps import StepReply, StepRequest

ALIVE: Final = StepReply("done")
_EVERYBODYS: Final = Identity(0, "", Role.ADMIN)  # the engine has checked whose jobs they are


class AttemptSteps:
    """Carries out what functions ask for; the engine looks at their leases."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def step(self, holder: Holder, request: StepRequest) -> StepReply:
        """Does what a function asks for."""
        steps, key = self._engine.steps, request.key
        if request.do == "find":
            return _reply(await steps.find(holder, key))
        if request.do == "store":
            return _reply(await steps.store_result(holder, key, request.value))
        if request.do == "sleep":
            if request.wait_ms is None:
                raise InvalidInput("wait_ms", "given", "nothing")
            return _reply(await steps.sleep(holder, key, request.wait_ms))
        if request.do == "wait_for":
            return _reply(await steps.wait_for(holder, key, request.name, request.wait_ms))
        if request.do == "ask":
            asked = await steps.ask(holder, key, request.question, request.schema, request.wait_ms)
            return _reply(asked)
        if request.do == "send":
            await steps.send_from(holder, request.name, request.value, key)
            return ALIVE
        if request.do == "join":
            return await self._joined(await steps.join(holder, key, request.jobs, request.wait_ms))
        if request.do == "alive":
            await steps.note_alive(holder)
            return ALIVE
        assert_never(request.do)

    async def _joined(self, row: StepRow) -> StepReply:
        """Returns the jobs that ended, as lists show them."""
        if row.state != StepState.DONE:
            return _reply(row)
        ids = msgspec.json.decode(row.value or b"[]", type=list[int])
        jobs = {job.id: job for job in await Queries(self._engine).some_jobs(ids, _EVERYBODYS)}
        gone = [job for job in ids if job not in jobs]
        if gone:
            raise Conflict("job_removed", f"job {gone[0]}, which this one waited for, was removed")
        return StepReply("done", [jobs[job] for job in ids])


def _reply(row: StepRow | None) -> StepReply:
    if row is None:
        return StepReply("missing")
    if row.state == StepState.DONE:
        value = None if row.value is None else msgspec.Raw(row.value)
        return StepReply("done", value)
    return StepReply("pending" if row.state == StepState.PENDING else "timed_out")
