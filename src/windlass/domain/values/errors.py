"""The small tree of errors that callers see.

Each message says what was expected and what we got. Normal outcomes (a lost lease, nothing to do)
are values in an answer, never errors. `MissingExtra` names the extra of Windlass that installs an
optional package.
"""

import math
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

GOT_LIMIT = 80
_MAX_INT_BITS = 256


class _NotKnown:
    """The sentinel for an unknown value; errors are pickled, and it stays the same object."""

    def __reduce__(self) -> str:
        return "NOT_KNOWN"


NOT_KNOWN: Final = _NotKnown()  # the given value is not known


class WindlassError(Exception):
    """The root: a stable `code` for programs and a `message` for people."""

    code: str = "error"

    @property
    def message(self) -> str:
        return " ".join(str(arg) for arg in self.args)

    def __str__(self) -> str:
        return self.message

    def details(self) -> dict[str, object]:
        """Returns what the error body carries beside code and message."""
        return {}

    def describe(self) -> dict[str, object]:
        """Returns the body of an HTTP error: plain values, ready for JSON."""
        return {"error": {"code": self.code, "message": self.message, **self.details()}}


class InvalidInput(WindlassError):
    """An invalid value: its field, what was expected, what we got, and perhaps a `hint`.

    A hint is a clause such as "did you mean X?"; the message adds it after a semicolon. `of` says
    whose field it is, where that is not clear: the task of a job.
    """

    code = "invalid_input"
    of = ""

    def __init__(self, field: str, expected: str, got: object, hint: str = "") -> None:
        super().__init__(field, expected, got, hint)
        self.field = field
        self.expected = expected
        self.got = got
        self.hint = hint.removeprefix("; ")

    @property
    def message(self) -> str:
        end = f"; {self.hint}" if self.hint else ""
        got = "" if self.got is NOT_KNOWN else f", got {shorten(self.got)}"
        of = f" of {self.of}" if self.of else ""
        return f"expected {self.field}{of} to be {self.expected}{got}{end}"

    def details(self) -> dict[str, object]:
        body: dict[str, object] = {"field": self.field, "expected": self.expected}
        if self.got is not NOT_KNOWN:
            body["got"] = _plain(self.got)
        return {**body, "hint": self.hint} if self.hint else body


class UnknownName(InvalidInput):
    """A name that is not a known one; `place` says where it is, such as "FILE:LINE: "."""

    def __init__(
        self, kind: str, name: str, expected: str, hint: str = "", place: str = ""
    ) -> None:
        super().__init__(kind, expected, name, hint)
        self.place = place

    @property
    def message(self) -> str:
        end = f"; {self.hint}" if self.hint else f" (expected {self.expected})"
        return f"{self.place}unknown {self.field} {shorten(self.got)}{end}"

    def details(self) -> dict[str, object]:
        return {**super().details(), "unknown": True}


def read_invalid_input(error: Mapping[str, Any]) -> InvalidInput:
    """Returns the error from the body that `describe` wrote."""
    field, hint = str(error.get("field", "request")), str(error.get("hint", ""))
    expected, got = str(error.get("expected", error["message"])), error.get("got", NOT_KNOWN)
    if error.get("unknown"):
        return UnknownName(field, str(got), expected, hint)
    return InvalidInput(field, expected, got, hint)


class Conflict(WindlassError):
    """The request is valid, but the state of the store does not allow it."""

    def __init__(self, code: str, message: str, retry_after_ms: int | None = None) -> None:
        super().__init__(code, message, retry_after_ms)
        self.code = code
        self.retry_after_ms = retry_after_ms

    @property
    def message(self) -> str:
        return str(self.args[1])

    def details(self) -> dict[str, object]:
        return {} if self.retry_after_ms is None else {"retry_after_ms": self.retry_after_ms}


class NotFound(WindlassError):
    """A job, worker, workflow, … does not exist; `hint` may suggest another name."""

    code = "not_found"

    def __init__(self, kind: str, id: object, hint: str = "") -> None:  # noqa: A002 - as shown
        super().__init__(kind, id, hint)
        self.kind = kind
        self.id = id
        self.hint = hint.removeprefix("; ")

    @property
    def message(self) -> str:
        end = f"; {self.hint}" if self.hint else ""
        return f"{self.kind} {shorten(self.id)} does not exist{end}"

    def details(self) -> dict[str, object]:
        body = {"field": self.kind, "got": _plain(self.id)}
        return {**body, "hint": self.hint} if self.hint else body


def existing(kind: str, id: object, found: T | None) -> T:  # noqa: A002 - as shown
    """Returns what a look-up found; raises `NotFound` if that is None."""
    if found is None:
        raise NotFound(kind, id)
    return found


class Lost(NotFound):
    """A job or workflow whose id was answered, and which the database has lost since."""

    def __init__(self, kind: str, id: object, message: str) -> None:  # noqa: A002 - as shown
        super().__init__(kind, id)
        self.code = f"{kind}_lost"
        self.args = kind, id, message

    @property
    def message(self) -> str:
        return str(self.args[2])


class InvalidTransition(WindlassError):
    """A change of state that is not in the table of transitions."""

    code = "invalid_transition"

    def __init__(self, source: str | None, to: str, allowed: Iterable[str] = ()) -> None:
        self.source = source
        self.to = to
        self.allowed = tuple(str(state) for state in allowed)
        super().__init__(source, to, self.allowed)

    @property
    def message(self) -> str:
        came_from = "(new)" if self.source is None else str(self.source)
        may = ", ".join(self.allowed) if self.allowed else "nothing"
        return f"invalid transition from {came_from} to {self.to}: {came_from} may become {may}"

    def details(self) -> dict[str, object]:
        return {
            "field": "state",
            "expected": ", ".join(self.allowed) if self.allowed else "no transition",
            "got": str(self.to),
        }


class Overloaded(WindlassError):
    """A bounded queue is full: nothing was done, try again later."""

    code = "overloaded"

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(retry_after_ms)
        self.retry_after_ms = retry_after_ms

    @property
    def message(self) -> str:
        return f"too many requests are waiting, try again in {self.retry_after_ms} ms"

    def details(self) -> dict[str, object]:
        return {"retry_after_ms": self.retry_after_ms}


class TooManyRequests(Overloaded):
    """One caller has too many requests open: nothing was done, try again later."""

    code = "too_many_requests"

    def __init__(self, retry_after_ms: int, message: str = "too many requests at once") -> None:
        super().__init__(retry_after_ms)
        self._message = message

    @property
    def message(self) -> str:
        return self._message


class StoreUnavailable(WindlassError):
    """The store did not answer; if `outcome_unknown`, it may have acted anyway."""

    code = "store_unavailable"

    def __init__(self, message: str, outcome_unknown: bool) -> None:
        super().__init__(message, outcome_unknown)
        self.outcome_unknown = outcome_unknown

    @property
    def message(self) -> str:
        return str(self.args[0])

    def details(self) -> dict[str, object]:
        return {"outcome_unknown": self.outcome_unknown}


class Unreachable(WindlassError):
    """Nobody answered at an address.

    If the request was `sent`, we do not know whether it was carried out.
    """

    code = "unreachable"

    def __init__(self, message: str, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class WrongServer(Unreachable):
    """The program at an address is not a Windlass server, or speaks another protocol."""

    code = "wrong_server"

    def __init__(self, server: str, why: str) -> None:
        super().__init__(f"{server} is not a Windlass server: {why}", sent=False)


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yields an error and its causes, each once: such a chain may be circular."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def shorten(value: object, limit: int = GOT_LIMIT) -> str:
    """Returns a value as one short printable line, however large, deep or binary it is."""
    text = value if isinstance(value, str) and _reads_well(value) else _represent(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _reads_well(text: str) -> bool:
    start = text[: GOT_LIMIT + 1]
    return bool(start) and start.isprintable() and not start.startswith(" ") and text[-1] != " "


def _represent(value: object) -> str:
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        return f"an integer of {value.bit_length()} bits"
    short = reprlib.Repr()
    short.maxstring = short.maxother = 2 * GOT_LIMIT
    try:
        return short.repr(value)
    except Exception:  # A value whose repr fails must not hide the error it is part of.
        return f"a value of type {type(value).__name__}"


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and value.bit_length() < 64:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return shorten(value)


class WaitTimeout(WindlassError, TimeoutError):
    """A wait timed out: nothing came for `wait_for` or `ask`, or a job has not ended."""

    code = "wait_timeout"


# The extra that installs each package, by its import name.
EXTRAS: Final = {
    "asyncpg": "postgres",
    "boto3": "ec2",
    "botocore": "ec2",
    "django": "django",
    "fastapi": "fastapi",
    "flask": "flask",
    "gcovr": "coverage",
    "imageio_ffmpeg": "demo",
    "joserfc": "oidc",
    "kubernetes": "kubernetes",
    "obstore": "s3",
    "opentelemetry": "otel",
    "starlette": "fastapi",
}


class MissingExtra(WindlassError, ImportError):
    """Something needs a package that is not installed; the message is the command for it."""

    code = "extra_missing"

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(
            f"this needs {module}, which is not installed: run pip install 'windlass[{extra}]'"
        )


def missing_extra(error: ImportError, extra: str | None = None) -> MissingExtra | None:
    """Returns the error to raise for a package of an extra; None for any other package."""
    module = (error.name or "").partition(".")[0]
    known = EXTRAS.get(module)
    return None if known is None else MissingExtra(module, extra or known)


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Raises `MissingExtra` if an import inside fails that needs this extra."""
    try:
        yield
    except ImportError as error:
        found = missing_extra(error, extra)
        if found is None:
            raise
        raise found from None
