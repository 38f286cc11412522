"""Carries out what the functions of running jobs ask for."""

from typing import Final, assert_never

import msgspec

from windlass.domain.rows.steps import StepRow, StepState
from windlass.domain.values.errors import InvalidInput
from windlass.engine.engine import Engine
from windlass.ports.gateway import Holder
from windlass.wire.steps import StepReply, StepRequest

ALIVE: Final = StepReply("done")


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
        if request.do == "alive":
            await steps.note_alive(holder)
            return ALIVE
        assert_never(request.do)


def _reply(row: StepRow | None) -> StepReply:
    if row is None:
        return StepReply("missing")
    if row.state == StepState.DONE:
        value = None if row.value is None else msgspec.Raw(row.value)
        return StepReply("done", value)
    return StepReply("pending" if row.state == StepState.PENDING else "timed_out")
