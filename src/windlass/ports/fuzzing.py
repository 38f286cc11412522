"""What a server reads of the pipelines of commit fuzzing. It changes nothing there."""

from typing import NamedTuple, Protocol

from windlass.domain.values.errors import NotFound
from windlass.wire.fleet.fuzzing import (
    FuzzCoverage,
    FuzzFinding,
    FuzzReached,
    FuzzSolver,
    FuzzStatistics,
    FuzzStatus,
)


class FuzzInput(NamedTuple):
    """The input of a finding."""

    name: str
    data: bytes


class FuzzingReader(Protocol):
    """Reads the state of solvers, each call within bounds of time and size.

    Raises `NotFound` for what does not exist, and `StoreUnavailable` if the state cannot be read.
    """

    async def solvers(self, patience_s: float | None = None, /) -> list[FuzzSolver]:
        """Returns all solvers; waits for each no longer than that, and then says what it was."""
        ...

    async def status(self, solver: str) -> FuzzStatus: ...

    async def finding(self, solver: str, key: str, /) -> FuzzFinding: ...

    async def input(self, solver: str, key: str, /) -> FuzzInput: ...

    async def coverage(self, solver: str) -> FuzzCoverage: ...

    async def statistics(self, solver: str) -> FuzzStatistics: ...

    async def reached(self, solver: str, commit: str, /) -> FuzzReached: ...

    async def report_page(self, solver: str, page: str, /) -> bytes: ...


class NoFuzzing:
    """Implements `FuzzingReader` for a server that shows no solvers."""

    async def solvers(self, _: float | None = None, /) -> list[FuzzSolver]:
        return []

    async def status(self, solver: str) -> FuzzStatus:
        raise _unknown(solver)

    async def finding(self, solver: str, _: str, /) -> FuzzFinding:
        raise _unknown(solver)

    async def input(self, solver: str, _: str, /) -> FuzzInput:
        raise _unknown(solver)

    async def coverage(self, solver: str) -> FuzzCoverage:
        raise _unknown(solver)

    async def statistics(self, solver: str) -> FuzzStatistics:
        raise _unknown(solver)

    async def reached(self, solver: str, _: str, /) -> FuzzReached:
        raise _unknown(solver)

    async def report_page(self, solver: str, _: str, /) -> bytes:
        raise _unknown(solver)


def _unknown(solver: str) -> NotFound:
    return NotFound("solver", solver, "start the server with --fuzz SOLVER.yaml to show it")
