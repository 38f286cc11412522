"""What clients ask of a scheduler.

A server is asked over HTTP, an embedded engine in the same process (`windlass/client/calls.py`).
Handles and clients do not know which of the two answers.
"""

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar
from urllib.parse import quote

import msgspec

from windlass.client.calls import Answer, Calls
from windlass.client.events import read_events
from windlass.client.plain_sockets import NoAnswer, TimeIsUp
from windlass.client.reconnect import (
    JOBS_PER_SECOND,
    LAST_TRY_S,
    PASSES,
    RECONNECT_SECONDS,
    Reconnect,
)
from windlass.client.transport import CHECK, Transport
from windlass.client.uploads import described, read
from windlass.domain.explain.explanation import Explanation
from windlass.domain.values.errors import Conflict, InvalidInput, WindlassError, WrongServer
from windlass.messages.files import Uploaded
from windlass.messages.jobs import Job, SubmitReply, SubmitRequest, WaitReply, WaitRequest
from windlass.messages.schedules import StartReply, StartRequest
from windlass.messages.steps import SendReply, SendRequest
from windlass.messages.system import EventInfo
from windlass.messages.workflows import Workflow
from windlass.ports.loop_time import OUTSIDE, to_loop
from windlass.tracing.current import sending

if TYPE_CHECKING:  # loaded by clients that have one
    from windlass.client.spool import Spool

T = TypeVar("T")

DELIVERY_S: Final = 30.0  # for what waited in a spool, before others may try
LOG_PART: Final = 1024 * 1024  # bytes of a log in one answer
BYTES: Final = "application/octet-stream"  # of artifacts
LOG_WAIT_SECONDS: Final = 20  # for the next part of a log


class LogChoice(NamedTuple):
    """Which part of a job's log to read: of which attempt, from where, and with times or not.

    `tail` is a number of lines, `since` a time or how long ago.
    """

    attempt: int | None = None
    tail: int | None = None
    since: str | None = None
    timestamps: bool = False


WHOLE_LOG: Final = LogChoice()


class SubmitOptions(NamedTuple):
    """How submissions go.

    They take `seconds` in all, as starts and signals do; None: as long as other calls. If
    it `spools`, what no server takes in that time waits in the `spool`.
    """

    seconds: float | None = None
    spool: "Spool | None" = None
    spools: bool = False


PATIENT: Final = SubmitOptions()


def fresh_key() -> str:
    """Returns a new unique key.

    It begins with the time: then stores write the keys of one moment side by side, not each to a
    page of its own.
    """
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


class LogPart(NamedTuple):
    """A part of a log: of which attempt, where the next one begins, and the size of the whole."""

    attempt: int
    next: int
    size: int
    is_over: bool
    content: bytes

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Returns the part that an answer holds."""
        headers = answer.headers
        return cls(
            attempt=int(headers["Windlass-Log-Attempt"]),
            next=int(headers["Windlass-Log-Next"]),
            size=int(headers["Windlass-Log-Bytes"]),
            is_over=headers.get("Windlass-Log-Over") == "true",
            content=answer.content,
        )


async def skip(chunks: AsyncIterator[bytes], count: int) -> AsyncIterator[bytes]:
    """Yields what comes after the first `count` bytes."""
    async for chunk in chunks:
        if len(chunk) > count:
            yield chunk[count:]
        count = max(count - len(chunk), 0)


class Service:
    """Asks a scheduler, over HTTP or in this process; raises `windlass.domain.values.errors`."""

    def __init__(
        self,
        transport: Calls,
        reconnect: Reconnect | None = None,
        options: SubmitOptions = PATIENT,
    ) -> None:
        self.transport = transport
        # In this process, nothing is away that could come back.
        self._reconnect = reconnect or Reconnect(
            RECONNECT_SECONDS if transport.may_lose_answers else 0
        )
        self._options = options

    @property
    def installation(self) -> Hashable:
        """Identifies the store: where it is equal, job ids mean the same jobs."""
        return self.transport.installation

    async def open(self) -> None:
        """Gets ready, and delivers what waits in the spool; the first call does the former too."""
        await self.transport.open()
        spool = self._options.spool
        if spool is not None and await spool.is_waiting(self.place):
            from windlass.ports.this_process import refuse_in_tests

            with suppress(Conflict):
                refuse_in_tests("a spool")
                spool.deliver(self.place, self._deliver)

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        """Sends a submission with a key, so that it can be repeated if no answer came."""
        if request.jobs and request.key is None and self.transport.may_lose_answers:
            request = msgspec.structs.replace(request, key=fresh_key())
        with sending(request.jobs) as jobs:
            if jobs is not request.jobs:
                request = msgspec.structs.replace(request, jobs=jobs)
            if self._options.spool is not None and self._options.spools:
                return await self._submit_or_keep(request, self._options.spool)
            return await self._post(request)

    async def _submit_or_keep(self, request: SubmitRequest, spool: "Spool") -> SubmitReply:
        """Sends a submission, unless others wait; raises `Spooled` if it has to wait, too."""
        await to_loop()
        why = None
        if not await spool.is_waiting(self.place):
            try:
                return await self._post(request)
            except WrongServer:
                raise  # Time does not mend an address.
            except PASSES as error:
                why = error
        raise await spool.keep(self.place, request, why, self._deliver) from why

    async def _post(self, request: SubmitRequest) -> SubmitReply:
        limit = self._limit_for(len(request.jobs))
        if OUTSIDE.get():
            try:
                return self._post_from_here(request, limit)
            except TimeIsUp:  # Its key lets it be sent again.
                limit = None if limit is None else LAST_TRY_S
            except NoAnswer:
                pass
            await to_loop()
        return await self._send_within(limit, self._posting(request))

    def _post_from_here(self, request: SubmitRequest, limit: float | None) -> SubmitReply:
        """Sends a submission without an event loop; raises `NoAnswer`."""
        if request.key is None or not isinstance(self.transport, Transport):
            raise NoAnswer
        reply = self.transport.post_from_here("/api/v1/jobs", SubmitReply, request, limit)
        self._reconnect.note_answer()
        return reply

    def _limit_for(self, jobs: int) -> float | None:
        """Returns how many seconds a submission of so many jobs may take."""
        seconds = self._options.seconds
        return None if seconds is None else seconds + jobs // JOBS_PER_SECOND

    async def _deliver(self, request: SubmitRequest) -> SubmitReply:
        """Sends what waited in a spool, exactly as it was first sent."""
        call = self._posting(request)
        return await self._reconnect.within(DELIVERY_S, lambda left: call(timeout=left))

    def _posting(self, request: SubmitRequest) -> Callable[..., Awaitable[SubmitReply]]:
        return partial(self.transport.call, "POST", "/api/v1/jobs", SubmitReply, request)

    @property
    def place(self) -> str:
        """The addresses of its servers, as a spool notes them."""
        return ",".join(sorted(self.transport.addresses))

    def submitting(self, seconds: float | None, spools: bool | None) -> Self:
        """Returns a service with other options on the same connections; None keeps an option. An
        embedded service returns itself: it has no server that could be away.
        """
        if not self.transport.may_lose_answers:
            return self
        old = self._options
        if spools and old.spool is None:
            got = '"spool" in a client without a folder'
            raise InvalidInput("on_unavailable", '"raise"', got, "use Client(spool=DIR)")
        options = SubmitOptions(
            old.seconds if seconds is None else seconds,
            old.spool,
            old.spools if spools is None else spools,
        )
        return type(self)(self.transport, self._reconnect, options)

    async def ask(
        self, method: str, path: str, answer: type[T], body: Any = None, **query: Any
    ) -> T:
        """Calls an operation: reads are repeated while the server is away.

        A change is sent once, so that the answer says what it changed.
        """
        if method == "GET":
            return await self.repeat(method, path, answer, body, **query)
        return await self.transport.call(method, path, answer, body, query=query)

    async def repeat(
        self, method: str, path: str, answer: type[T], body: Any = None, **query: Any
    ) -> T:
        """Does the same, and repeats changes too: those that have no effect a second time."""
        return await self._reconnect.insist(
            lambda: self.transport.call(method, path, answer, body, query=query)
        )

    async def job(self, job: int) -> Job:
        return await self.ask("GET", f"/api/v1/jobs/{job}", Job)

    async def wait(self, job: int, seconds: float, given_at: int = 0) -> Job:
        path, given = f"/api/v1/jobs/{job}/wait", given_at or None
        return await self.ask("GET", path, Job, timeout=seconds, given_at=given)

    async def wait_some(self, request: WaitRequest) -> WaitReply:
        return await self.repeat("POST", "/api/v1/jobs/wait", WaitReply, request)

    async def wait_workflow(self, workflow: int, seconds: float, given_at: int = 0) -> Workflow:
        path, given = f"/api/v1/workflows/{workflow}/wait", given_at or None
        return await self.ask("GET", path, Workflow, timeout=seconds, given_at=given)

    async def explain(self, job: int, given_at: int = 0) -> Explanation:
        path = f"/api/v1/jobs/{job}/explain"
        return await self.ask("GET", path, Explanation, given_at=given_at or None)

    async def start_template(
        self, name: str, request: StartRequest, namespace: str | None = None
    ) -> StartReply:
        """Sends a start with a key, so that it can be repeated if no answer came."""
        if request.submission_key is None and self.transport.may_lose_answers:
            request = msgspec.structs.replace(request, submission_key=fresh_key())
        path = f"/api/v1/templates/{quote(name, safe='')}/start"
        query = {"namespace": namespace}
        call = partial(self.transport.call, "POST", path, StartReply, request, query=query)
        return await self._send(call)

    async def send(self, request: SendRequest) -> SendReply:
        """Sends a signal with a key, so that it can be repeated if no answer came."""
        if request.key is None:
            request = msgspec.structs.replace(request, key=fresh_key())
        call = partial(self.transport.call, "POST", "/api/v1/signals", SendReply, request)
        return await self._send(call)

    def events(self, query: Mapping[str, Any]) -> AsyncIterator[EventInfo]:
        return read_events(self.transport, dict(query), self._reconnect)

    def log(
        self, job: int, follow: bool, choice: LogChoice = WHOLE_LOG, given_at: int = 0
    ) -> AsyncIterator[bytes]:
        query = {**choice._asdict(), "given_at": given_at or None}
        return self._follow_log(job, query) if follow else self._read_log(job, query)

    async def _read_log(self, job: int, query: dict[str, Any]) -> AsyncIterator[bytes]:
        """Yields the log of an attempt as far as it is written now, part by part."""
        offset, end = 0, None
        while end is None or offset < end:
            part = await self._log_part(job, **query)
            offset = part.next
            query |= {"attempt": part.attempt, "offset": offset, "tail": None, "since": None}
            end = part.size if end is None else end
            yield part.content

    async def _follow_log(self, job: int, query: dict[str, Any]) -> AsyncIterator[bytes]:
        query = {**query, "wait": LOG_WAIT_SECONDS}
        while True:
            part = await self._log_part(job, **query)
            query |= {"offset": part.next, "offset_attempt": part.attempt}
            query |= {"tail": None, "since": None}
            if part.content:
                yield part.content
            if part.is_over:
                return

    async def _log_part(self, job: int, **query: Any) -> LogPart:
        path = f"/api/v1/jobs/{job}/log"
        asked = {"limit": LOG_PART, **query}
        answer = await self._reconnect.insist(lambda: self.transport.get(path, asked))
        try:
            return LogPart.of(answer)
        except (KeyError, ValueError):
            why = f"its answer is no log; {CHECK}"
            raise WrongServer(self.transport.server, why) from None

    async def artifact(self, job: int, name: str, given_at: int = 0) -> AsyncIterator[bytes]:
        """Yields the bytes of an artifact; if the connection breaks, it reads on from there."""
        path = f"/api/v1/jobs/{job}/artifacts/{quote(name)}"
        query = {"given_at": given_at or None}
        chunks = self.transport.stream(path, query, BYTES)
        received = 0

        async def read_on() -> bytes | None:
            nonlocal chunks
            try:
                return await anext(chunks, None)
            except WindlassError:
                chunks = skip(self.transport.stream(path, query, BYTES), received)
                raise

        while (chunk := await self._reconnect.insist(read_on)) is not None:
            received += len(chunk)
            yield chunk

    async def upload(self, path: Path, namespace: str | None) -> Uploaded:
        """Sends a file; it is stored under its digest, so that it can be sent again."""
        facts = await described(path)
        query = {"size": facts.size, "content_type": facts.content_type}
        if namespace is not None:
            query["namespace"] = namespace
        address = f"/api/v1/uploads/{facts.sha256}"
        return await self._reconnect.insist(
            lambda: self.transport.call("PUT", address, Uploaded, query=query, content=read(path)),
            self._options.seconds,
        )

    async def close(self) -> None:
        if self._options.spool is not None:
            self._options.spool.stop()
        await self.transport.close()

    async def _send(self, call: Callable[..., Awaitable[T]]) -> T:
        """Makes a call that has a key, within the time of submissions."""
        return await self._send_within(self._limit_for(1), call)

    async def _send_within(self, limit: float | None, call: Callable[..., Awaitable[T]]) -> T:
        if not self.transport.may_lose_answers:
            return await call()
        return await self._reconnect.within(limit, lambda left: call(timeout=left))
