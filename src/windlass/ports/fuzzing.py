"""What a server reads of the pipelines of commit fuzzing. It changes nothing there."""

from typing import NamedTuple, Protocol

from windlass.domain.values.errors import NotFound
from windlass.wire.fleet.fuzzing import FuzzCoverage, FuzzFinding, FuzzSolver, FuzzStatus


class FuzzInput(NamedTuple):
    """The input of a finding."""

    name: str
    data: bytes


class FuzzingReader(Protocol):
    """Reads the state of solvers, each call within bounds of time and size.

    Raises `NotFound` for what does not exist, and `StoreUnavailable` if the state cannot be read.
    """

    async def solvers(self) -> list[FuzzSolver]: ...

    async def status(self, solver: str) -> FuzzStatus: ...

    async def finding(self, solver: str, key: str, /) -> FuzzFinding: ...

    async def input(self, solver: str, key: str, /) -> FuzzInput: ...

    async def coverage(self, solver: str) -> FuzzCoverage: ...


class NoFuzzing:
    """Implements `FuzzingReader` for a server that shows no solvers."""

    async def solvers(self) -> list[FuzzSolver]:
        return []

    async def status(self, solver: str) -> FuzzStatus:
        raise _unknown(solver)

    async def finding(self, solver: str, _: str, /) -> FuzzFinding:
        raise _unknown(solver)

    async def input(self, solver: str, _: str, /) -> FuzzInput:
        raise _unknown(solver)

    async def coverage(self, solver: str) -> FuzzCoverage:
        raise _unknown(solver)


def _unknown(solver: str) -> NotFound:
    return NotFound("solver", solver, "start the server with --fuzz SOLVER.yaml to show it")
