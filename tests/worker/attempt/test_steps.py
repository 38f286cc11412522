"""Steps on their way to the server: repeated until one answers, or the attempt is stopped."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.virtual import run_virtual
from windlass.clock import RealClock
from windlass.domain.values.errors import (
    Conflict,
    StoreUnavailable,
    TooManyRequests,
    Unreachable,
    WindlassError,
)
from windlass.messages.steps import StepReply, StepRequest
from windlass.ports.gateway import Holder
from windlass.worker.attempt import calls

HOLDER = Holder(1, 1, 7, 1)
REQUEST = StepRequest(do="store", key="k", value=1)


class Troubled:
    """Fails in these ways, one call after another, and then answers."""

    def __init__(self, *troubles: WindlassError) -> None:
        self.troubles = list(troubles)
        self.asked: list[StepRequest] = []

    async def step(self, holder: Holder, request: StepRequest) -> StepReply:
        self.asked.append(request)
        if self.troubles:
            raise self.troubles.pop(0)
        return StepReply("done", request.value)

    async def ask(self, stopped: bool = False) -> StepReply:
        context = SimpleNamespace(gateway=self, clock=RealClock())
        return await calls.ask_step(cast(Any, context), HOLDER, REQUEST, lambda: stopped)


def test_a_step_is_told_again_until_a_server_answers() -> None:
    away = [Unreachable("away"), StoreUnavailable("away", True)] * 10
    troubled = Troubled(*away)
    assert run_virtual(troubled.ask()) == StepReply("done", 1)
    assert troubled.asked == [REQUEST] * 21


@pytest.mark.parametrize("error", [Conflict("lease_lost", "gone"), TooManyRequests(5)])
def test_a_refusal_is_not_repeated(error: WindlassError) -> None:
    troubled = Troubled(error)
    with pytest.raises(type(error)):
        run_virtual(troubled.ask())
    assert len(troubled.asked) == 1


def test_an_attempt_that_is_stopped_asks_no_more() -> None:
    troubled = Troubled(Unreachable("away"), Unreachable("away"))
    with pytest.raises(Unreachable):
        run_virtual(troubled.ask(stopped=True))
    assert len(troubled.asked) == 1
