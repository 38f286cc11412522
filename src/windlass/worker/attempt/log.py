"""The log of one attempt: sends its output to the server, bounded, without blocking the agent.

A job that writes faster than the server takes is throttled at its pipe; the agent's loop goes on.
If the log exceeds its limit, the middle is left out and the end is kept.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Literal

import structlog

from windlass.domain.values.errors import Conflict, WindlassError
from windlass.ports.gateway import Holder
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.secrets import Mask

READ = 65_536
CHUNK = 262_144  # maximum bytes in one call
HIGH = 524_288  # bytes that may wait before we stop reading the pipe
LOW = 131_072
LAST = 1_000  # bytes of the end that messages may quote
TAIL = 262_144  # bytes of the end that are kept when the middle is left out
MARKER_ROOM = 80
PACE_MS = 100  # slow output is sent in calls this far apart
PATIENCE = 60  # consecutive failed calls before the log is given up
RETRY_MS = 1_000
KNOWN_MS = 2_000  # until the first bytes of a log must be stored
DRAIN_MS = 2_000  # how long a pipe may stay open after its job has ended

log = structlog.get_logger()


class AttemptLog:
    """Sends output, with secrets masked; `active` is called with every output.

    Nothing is created on the server before there is output.
    """

    def __init__(
        self, context: AgentContext, holder: Holder, mask: Mask | None, active: Callable[[], None]
    ) -> None:
        self._gateway = context.gateway
        self._holder = holder
        self._clock = context.clock
        self._active = active
        # Its held-back bytes may be the beginning of a secret.
        self._masker = None if mask is None else mask.stream()
        limit = context.log_limit
        self._held_up: list[Callable[[], None]] = []  # callers that wait for room
        self._tail_room = min(TAIL, limit // 2) if limit else 0
        # With the marker in between, everything stays within the limit. -1: no limit.
        self._head_room = max(0, limit - self._tail_room - MARKER_ROOM) if limit else -1
        self._head = bytearray()
        self._tail = bytearray()
        self.end = b""  # the last bytes of the output, with secrets masked
        self._cut = 0
        self._sent = 0
        self._dropped = 0  # bytes
        self._pipes: dict[int, bool] = {}  # descriptor → whether it is being read
        self._news = asyncio.Event()
        self._rush = asyncio.Event()
        self._closed = False
        self._lost = False
        self._peak_memory = 0  # bytes of the job, known at the end
        self._over = asyncio.Event()  # the job has ended, and its log with it
        self._ends = asyncio.Event()
        self._ends.set()
        self._known = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._send())

    def write(self, data: bytes) -> None:
        """Adds output."""
        self._active()
        if self._masker is not None:
            data = self._masker.feed(data)
        self._add(data)

    def _add(self, data: bytes) -> None:
        self.end = (self.end + data[-LAST:])[-LAST:]
        if self._lost:
            self._dropped += len(data)
            return
        if self._head_room >= 0:
            room = max(0, self._head_room - self._sent - len(self._head))
            if len(data) > room:
                self._keep_end(data[room:])
                data = data[:room]
        self._head += data
        self._news.set()

    def _keep_end(self, data: bytes) -> None:
        self._tail += data
        over = len(self._tail) - self._tail_room
        if over > self._tail_room or (over > 0 and len(data) > READ):
            self._cut += over
            del self._tail[:over]

    def full(self, resume: Callable[[], None]) -> bool:
        """Returns whether more output should wait; `resume` is called when there is room again."""
        if len(self._head) < HIGH or self._lost or self._closed:
            return False
        self._held_up.append(resume)
        return True

    def attach(self, fd: int) -> None:
        """Reads from this pipe from now on."""
        os.set_blocking(fd, False)
        self._pipes[fd] = True
        self._ends.clear()
        asyncio.get_running_loop().add_reader(fd, self._read, fd)

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._detach(fd)
            return
        self.write(data)
        if len(self._head) >= HIGH:
            for pipe, reading in self._pipes.items():
                if reading:
                    asyncio.get_running_loop().remove_reader(pipe)
                    self._pipes[pipe] = False

    def _resume(self) -> None:
        if len(self._head) <= LOW:
            for pipe, reading in self._pipes.items():
                if not reading:
                    asyncio.get_running_loop().add_reader(pipe, self._read, pipe)
                    self._pipes[pipe] = True
            self._let_go()

    def _let_go(self) -> None:
        held_up, self._held_up = self._held_up, []
        for resume in held_up:
            resume()

    def _detach(self, fd: int) -> None:
        if self._pipes.pop(fd):
            asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)
        if not self._pipes:
            self._ends.set()

    async def known(self) -> None:
        """Waits until the pipes have ended and the server knows of the log.

        Otherwise a follower of the job could take the missing log for its end. A pipe held by a
        stray process is cut off.
        """
        loop = asyncio.get_running_loop()
        if self._pipes:
            timer = loop.call_later(DRAIN_MS / 1000, self._cut_off)
            await self._ends.wait()
            timer.cancel()
        if (self._head or self._tail) and not self._known.is_set():
            timer = loop.call_later(KNOWN_MS / 1000, self._known.set)
            await self._known.wait()
            timer.cancel()

    def _cut_off(self) -> None:
        for fd in list(self._pipes):
            self._detach(fd)

    async def finish(self, peak_memory: int, lost: bool) -> None:
        """Sends the rest and ends the log; drops it if the lease is lost."""
        self._peak_memory = peak_memory
        if lost:
            self._drop()
        self._cut_off()
        if self._masker is not None:
            self._add(self._masker.flush())
        if self._tail_room and len(self._tail) > self._tail_room:
            over = len(self._tail) - self._tail_room
            self._cut += over
            del self._tail[:over]
        if self._lost:
            self._dropped += self._cut + len(self._tail)
            self._cut = 0
            self._tail.clear()
        if self._cut:
            self._head += b"\n[... %d bytes left out: the log's limit ...]\n" % self._cut
        self._head += self._tail
        self._closed = True
        self._over.set()
        self._let_go()
        self._news.set()
        self._rush.set()
        await self._task

    async def _send(self) -> None:
        failures = 0
        while not self._lost:
            if not self._head:
                if self._closed:
                    break
                self._news.clear()
                await self._news.wait()
                continue
            trickle = len(self._head) < READ
            try:
                await self._send_chunk()
                failures = 0
            except Conflict:
                self._give_up("fenced")
            except WindlassError as error:
                failures += 1
                if failures > PATIENCE:
                    self._give_up(error.message)
                await self._clock.sleep_ms(RETRY_MS)
                continue
            if trickle and not self._closed:
                await self._pause()
        await self._end()

    async def _pause(self) -> None:
        """Lets slow output accumulate, unless the job has ended."""
        timer = asyncio.get_running_loop().call_later(PACE_MS / 1000, self._rush.set)
        await self._rush.wait()
        timer.cancel()
        if not self._closed:
            self._rush.clear()

    async def _send_chunk(self) -> None:
        data = bytes(self._head[:CHUNK])
        position = await self._gateway.append_log(self._holder, self._sent, data)
        taken = max(0, min(len(data), position - self._sent))
        del self._head[:taken]
        self._sent += taken
        self._known.set()
        self._resume()

    def _drop(self) -> None:
        self._lost = True
        self._known.set()
        self._dropped += len(self._head)
        self._head.clear()

    def _give_up(self, why: str) -> None:
        self._drop()
        self._resume()
        log.warning("log_lost", job=self._holder.job, attempt=self._holder.attempt, reason=why)

    async def _end(self) -> None:
        """Reports the end of the log. If this gets lost, the server finds out by itself."""
        if not self._closed:
            await self._over.wait()  # All later bytes are missing as well.
        state: Literal["committed", "lost"] = "lost" if self._lost else "committed"
        for _ in range(PATIENCE):
            try:
                await self._gateway.end_log(
                    self._holder, self._sent + self._dropped, state, self._peak_memory
                )
            except Conflict:
                return
            except WindlassError:
                await self._clock.sleep_ms(RETRY_MS)  # The store's disk may be full.
            else:
                return
