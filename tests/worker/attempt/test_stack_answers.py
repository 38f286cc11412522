"""What a worker says when it is asked where a function is: no secrets, and always something."""

import asyncio
from typing import Any

import pytest

from windlass.domain.values.errors import Conflict
from windlass.messages.files import StackFrame, StackReport, StackThread
from windlass.ports.gateway import Holder
from windlass.worker.attempt import calls
from windlass.worker.attempt.calls import tell_stack
from windlass.worker.attempt.secrets import Mask

HOLDER = Holder(1, 1, 7, 1)
SECRET = "hunter2-hunter2"


class Gateway:
    """Remembers what it is told, and may refuse it."""

    def __init__(self) -> None:
        self.reports: list[StackReport] = []
        self.told = asyncio.Event()
        self.refuses = False

    async def stack(self, holder: Holder, report: StackReport) -> None:
        assert holder == HOLDER
        self.reports.append(report)
        self.told.set()
        if self.refuses:
            raise Conflict("lease_lost", "stop it")


class Function:
    """An executor whose function stands at one line, or does not answer."""

    def __init__(self, code: str | None = "", silent: bool = False) -> None:
        self.code = code
        self.silent = silent
        self.asked = 0

    async def stack(self, context: object) -> list[StackThread] | None:
        self.asked += 1
        if self.silent:
            await asyncio.Event().wait()
        if self.code is None:
            return None
        return [StackThread("MainThread", (StackFrame("a.py", 3, "f", self.code),))]


def tell(gateway: Gateway, executor: Any, *requests: int, mask: Mask | None = None) -> None:
    async def scene() -> None:
        for request in requests:
            tell_stack(gateway, HOLDER, request, executor, None, mask)  # type: ignore[arg-type]
        await gateway.told.wait()

    asyncio.run(scene())


def test_secrets_are_masked() -> None:
    gateway = Gateway()
    tell(gateway, Function(f"login({SECRET!r})"), 5, mask=Mask([SECRET]))
    (report,) = gateway.reports
    assert report.request == 5
    assert SECRET not in str(report)
    assert report.threads[0].frames[0].code.startswith("login('")
    assert report.threads[0].frames[0].line == 3


def test_a_request_that_comes_twice_is_answered_once() -> None:
    gateway, function = Gateway(), Function("x")
    tell(gateway, function, 5, 5)
    assert function.asked == 1
    assert len(gateway.reports) == 1


@pytest.mark.parametrize(
    ("executor", "problem"),
    [(object(), calls.NO_FUNCTION), (Function(None), calls.NOT_THERE),
     (Function(silent=True), calls.SILENT)],
)  # fmt: skip
def test_what_cannot_be_told_has_a_reason(
    executor: Any, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "PATIENCE_S", 0.01)
    gateway = Gateway()
    gateway.refuses = True  # which harms nobody
    tell(gateway, executor, 5)
    assert gateway.reports == [StackReport(request=5, problem=problem)]
