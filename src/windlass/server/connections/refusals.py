"""Answers to requests that are refused before the application sees them."""

from collections.abc import Callable
from enum import StrEnum
from http import HTTPStatus
from typing import Final, NamedTuple

import msgspec

RETRY_SECONDS: Final = 1

# Browsers must neither guess the type of an answer, nor keep it, nor show it in a frame.
SAFE_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class Reason(StrEnum):
    """Why a connection or request was refused, as the metrics name it."""

    MALFORMED = "malformed"
    HEADERS_TOO_LARGE = "headers_too_large"
    HEADERS_TOO_SLOW = "headers_too_slow"
    BODY_TOO_LARGE = "body_too_large"
    BODY_TOO_SLOW = "body_too_slow"
    BODY_MEMORY = "body_memory"
    UNREAD_ANSWER = "unread_answer"
    PIPELINED = "pipelined"
    TLS_HANDSHAKE = "tls_handshake"
    CONNECTIONS = "connections"
    CONNECTIONS_PER_CALLER = "connections_per_caller"
    REQUESTS_PER_CALLER = "requests_per_caller"
    COSTLY_PER_CALLER = "costly_per_caller"
    SIGN_INS = "sign_ins"


Count = Callable[[Reason], None]


class Refusal(NamedTuple):
    """A refusal with the answer that it gets."""

    reason: Reason
    status: int
    code: str
    message: str
    retry: bool = False

    def encode(self) -> bytes:
        """Returns the whole answer, after which the connection is closed."""
        error = {"code": self.code, "message": self.message}
        body = msgspec.json.encode({"error": error})
        fields = [
            *SAFE_HEADERS,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        if self.retry:
            fields.append((b"retry-after", b"%d" % RETRY_SECONDS))
        phrase = HTTPStatus(self.status).phrase.encode()
        head = b"".join(b"%b: %b\r\n" % field for field in fields)
        return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (self.status, phrase, head, body)


MALFORMED: Final = Refusal(Reason.MALFORMED, 400, "bad_request", "this is not valid HTTP/1.1")
HEADERS_TOO_LARGE: Final = Refusal(
    Reason.HEADERS_TOO_LARGE, 431, "headers_too_large", "the request has too many or long headers"
)
HEADERS_TOO_SLOW: Final = Refusal(
    Reason.HEADERS_TOO_SLOW, 408, "too_slow", "the headers did not arrive in time"
)
BODY_TOO_SLOW: Final = Refusal(Reason.BODY_TOO_SLOW, 408, "too_slow", "the body arrives too slowly")
PIPELINED: Final = Refusal(
    Reason.PIPELINED, 429, "too_many_requests", "too many requests without waiting for an answer",
    retry=True,
)  # fmt: skip
FULL: Final = Refusal(
    Reason.CONNECTIONS, 503, "overloaded", "the server has too many connections", retry=True
)
FULL_FOR_CALLER: Final = Refusal(
    Reason.CONNECTIONS_PER_CALLER, 429, "too_many_requests",
    "too many connections from this address", retry=True,
)  # fmt: skip
