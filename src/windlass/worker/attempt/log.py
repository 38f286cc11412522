"""The log of one attempt: nothing exists of it before there is output."""

from collections.abc import Callable

from windlass.ports.gateway import Holder
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.log_pump import LogPump
from windlass.worker.attempt.masking import Mask

KNOWN_MS = 2_000  # for the first bytes of a log to be kept
DRAIN_MS = 2_000  # how long a pipe may stay open when its job has ended


class AttemptLog:
    """Makes a `LogPump` with the first output; `active` is called with every output."""

    __slots__ = ("_active", "_context", "_holder", "_mask", "_pump")

    def __init__(
        self, context: AgentContext, holder: Holder, mask: Mask | None, active: Callable[[], None]
    ) -> None:
        self._context = context
        self._holder = holder
        self._mask = mask
        self._active = active
        self._pump: LogPump | None = None

    @property
    def exists(self) -> bool:
        """Whether there was any output."""
        return self._pump is not None

    def write(self, data: bytes) -> None:
        """Adds output."""
        self._made().feed(data)

    def attach(self, fd: int) -> None:
        """Reads output from this pipe from now on."""
        self._made().attach(fd)

    def full(self, resume: Callable[[], None]) -> bool:
        """Whether more output should wait; then `resume` is called once when it need not."""
        return self._pump is not None and self._pump.full(resume)

    async def known(self) -> None:
        """Waits until the pipes have ended and the server knows of the log."""
        if self._pump is not None:
            await self._pump.drained(DRAIN_MS)
            await self._pump.known(KNOWN_MS)

    async def finish(self, peak_memory: int, lost: bool) -> None:
        """Sends the rest and ends the log; drops it if the lease is lost."""
        if self._pump is not None:
            if lost:
                self._pump.abandon()
            self._pump.peak_memory = peak_memory
            await self._pump.finish()

    def _made(self) -> LogPump:
        if self._pump is None:
            context, mask = self._context, self._mask
            self._pump = LogPump(
                context.gateway, self._holder, context.log_limit, context.clock, self._active,
                None if mask is None else mask.stream(),
            )  # fmt: skip
        return self._pump
