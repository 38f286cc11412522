"""The log of one attempt: its output on the way to the server."""

from collections.abc import Callable

from windlass.ports.gateway import Holder
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.output.log_pump import LogPump
from windlass.worker.attempt.output.masking import Mask

KNOWN_MS = 2_000  # for the first bytes of a log to be kept
DRAIN_MS = 2_000  # how long a pipe may stay open when its job has ended


class AttemptLog:
    """Sends output, with secrets hidden; `active` is called with every output."""

    __slots__ = ("_pump",)

    def __init__(
        self, context: AgentContext, holder: Holder, mask: Mask | None, active: Callable[[], None]
    ) -> None:
        self._pump = LogPump(
            context.gateway, holder, context.log_limit, context.clock, active,
            None if mask is None else mask.stream(),
        )  # fmt: skip

    def write(self, data: bytes) -> None:
        """Adds output."""
        self._pump.feed(data)

    def attach(self, fd: int) -> None:
        """Reads output from this pipe from now on."""
        self._pump.attach(fd)

    def full(self, resume: Callable[[], None]) -> bool:
        """Returns whether more output should wait; then `resume` is called once there is room."""
        return self._pump.full(resume)

    async def known(self) -> None:
        """Waits until the pipes have ended and the server knows of the log."""
        await self._pump.drained(DRAIN_MS)
        await self._pump.known(KNOWN_MS)

    async def finish(self, peak_memory: int, lost: bool) -> None:
        """Sends the rest and ends the log; drops it if the lease is lost."""
        if lost:
            self._pump.abandon()
        self._pump.peak_memory = peak_memory
        await self._pump.finish()
