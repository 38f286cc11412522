"""uvicorn's protocol with limits on what a client sends, and on how slowly.

uvicorn accepts any protocol class (`Config(http=...)`). This one follows the parser's callbacks to
know which part of a request arrives; a look once a second (`look`) ends what takes too long, so
that a request arms no timer.
"""

from enum import Enum, auto
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from windlass.domain.access.http_limits import HttpLimits
from windlass.server.connections.refusals import (
    BODY_TOO_SLOW,
    HEADERS_TOO_LARGE,
    HEADERS_TOO_SLOW,
    MALFORMED,
    PIPELINED,
    Count,
    Reason,
    Refusal,
)

MAX_PIPELINED: Final = 8  # requests that wait for the answer of the one before
LINGER_SECONDS: Final = 2.0  # for a client to read why it was refused
CONNECTION: Final = "windlass.connection"  # where the application finds it in the scope


class Stage(Enum):
    """The part of a request that the client is sending."""

    NOTHING = auto()
    HEADERS = auto()
    BODY = auto()


class GuardedHttp(HttpToolsProtocol):
    """Answers requests over one connection, within limits."""

    def __init__(
        self, limits: HttpLimits, count: Count, connection: object, **options: Any
    ) -> None:
        super().__init__(**options)
        self._limits = limits
        self._count = count
        self._connection = connection
        self._header_bytes = limits.header_bytes
        self._stage = Stage.NOTHING
        self._requests = 0
        self._received = 0
        self._start = 0  # where a request that begins now was begun, in bytes received
        self._begun_at = 0
        self._body_at = 0  # how much was received when the body last grew
        self._piece = 0
        self._refusal: Refusal | None = None
        self._seen: object = None
        self._since = 0.0
        self._window_at = 0
        self._unsent = (0, 0.0)

    @property
    def is_busy(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            return
        before = self._received
        self._received = before + len(data)
        self._piece = len(data)
        self._start = before if self._stage is Stage.NOTHING else self._received
        super().data_received(data)
        if self._stage is Stage.NOTHING or self._refusal is not None:
            return
        # Behind the last chunk of a body there may be headers too.
        since = self._begun_at if self._stage is Stage.HEADERS else self._body_at
        is_long = self._received - since > self._header_bytes
        if is_long or len(self.headers) > self._limits.header_count:
            self.refuse(HEADERS_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope[CONNECTION] = self._connection  # type: ignore[typeddict-unknown-key]
        self._stage = Stage.HEADERS
        self._requests += 1
        self._begun_at, self._start = self._start, self._received

    def on_headers_complete(self) -> None:
        if self._are_headers_large():
            self._refusal = HEADERS_TOO_LARGE
        elif len(self.pipeline) >= MAX_PIPELINED:
            self._refusal = PIPELINED
        if self._refusal is not None:
            raise ValueError(self._refusal.message)  # the parser stops; see send_400_response
        self._stage = Stage.BODY
        self._body_at = self._received
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_at = self._received
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stage = Stage.NOTHING
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuses what the parser did not accept."""
        del msg
        self.refuse(self._refusal or MALFORMED)

    def refuse(self, refusal: Refusal) -> None:
        """Answers with a refusal where an answer still fits, and closes the connection."""
        self._count(refusal.reason)
        self._refusal = refusal
        self._seen, self._since = refusal, self.loop.time()
        if self._stage is Stage.HEADERS:
            self.headers.clear()  # They are large as objects, and the client may linger.
        waits = self.is_busy
        if waits and (refusal is not BODY_TOO_SLOW or self.cycle.response_started):
            self.transport.abort()
            return
        self.transport.write(refusal.encode())
        if waits or not self.transport.can_write_eof():
            self.transport.close()
        else:
            # Closed with unread input, the connection would be reset and the answer lost.
            self.transport.write_eof()

    def look(self, now: float) -> None:
        """Refuses a client that is too slow, and closes what is idle."""
        self._look_at_output(now)
        stage, limits = self._stage, self._limits
        seen: object = self._refusal or (stage, self._requests, self.is_busy)
        if seen != self._seen:
            self._seen, self._since, self._window_at = seen, now, self._received
            return
        passed = now - self._since
        if self._refusal is not None:
            if passed > LINGER_SECONDS:
                self.transport.abort()
        elif stage is Stage.BODY:
            self._look_at_body(now, passed)
        elif stage is Stage.HEADERS or not self._requests:
            if passed * 1000 >= limits.header_timeout_ms:
                self.refuse(HEADERS_TOO_SLOW)
        elif not self.is_busy and passed * 1000 >= limits.idle_timeout_ms:
            self.transport.close()

    def _look_at_body(self, now: float, passed: float) -> None:
        if not self.is_busy:  # it is answered; nobody wants the rest
            if passed > LINGER_SECONDS:
                self.transport.abort()
        elif self.flow.read_paused:  # then we are the slow ones
            self._since, self._window_at = now, self._received
        elif passed * 1000 >= self._limits.body_timeout_ms:
            if self._received - self._window_at < self._limits.body_rate * passed:
                self.refuse(BODY_TOO_SLOW)
            self._since, self._window_at = now, self._received

    def _look_at_output(self, now: float) -> None:
        """Cuts off a client that does not read its answer."""
        if not self.flow.write_paused:
            self._unsent = (0, now)
            return
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent[0]:
            self._unsent = (unsent, now)
        elif (now - self._unsent[1]) * 1000 >= self._limits.send_timeout_ms:
            self._count(Reason.UNREAD_ANSWER)
            self.transport.abort()

    def _are_headers_large(self) -> bool:
        if len(self.headers) > self._limits.header_count:
            return True
        longest = max(self._piece, self._received - self._begun_at)
        if longest <= self._header_bytes:
            return False  # as nearly always
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        return size > self._header_bytes
