"""How errors look over HTTP: a status, headers, and the body that every error has."""

import math
from typing import Any, Final

from windlass.api.errors import Forbidden, Unauthorized
from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    InvalidTransition,
    Lost,
    NotFound,
    Overloaded,
    StoreUnavailable,
    TooManyRequests,
    UnknownName,
    WindlassError,
)
from windlass.server.http.asgi import TooLarge

PATH_SHOWN: Final = 200  # characters of a path in a message


class Malformed(InvalidInput):
    """A part of the request has the wrong type or range, is missing, or is not known."""

    def __init__(self, field: str, expected: str, got: object, message: str = "") -> None:
        super().__init__(field, expected, got)
        self._message = message

    @property
    def message(self) -> str:
        return self._message or super().message


class UnknownParameter(Malformed):
    """The query has a parameter that the route does not take, such as a misspelt filter."""

    def __init__(self, name: str, expected: str, hint: str) -> None:
        told = UnknownName("query parameter", name, expected, hint)
        super().__init__(told.field, expected, name, told.message)
        self.hint = told.hint

    def details(self) -> dict[str, object]:
        return {**super().details(), "unknown": True}


class NotJson(WindlassError):
    """The body of the request is not JSON."""

    code = "bad_request"

    def details(self) -> dict[str, object]:
        return {"field": "body"}


class UnsupportedMedia(WindlassError):
    """The route does not take a body of this type."""

    code = "unsupported_media_type"

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected Content-Type {expected}, got {got[:100]}")


class NoRoute(WindlassError):
    """No route has this method and path."""

    code = "not_found"

    def __init__(self, method: str, path: str) -> None:
        super().__init__(method, path)
        self._asked = f"{method} {path}"[:PATH_SHOWN]

    @property
    def message(self) -> str:
        return f"there is no {self._asked}: see /openapi.json for what there is"


class WrongMethod(NoRoute):
    """The path exists, but not with this method."""

    code = "method_not_allowed"

    def __init__(self, method: str, path: str, allowed: str) -> None:
        super().__init__(method, path)
        self.allowed = allowed


INTERNAL_CODE: Final = "internal"
INTERNAL: Final[dict[str, Any]] = {
    "error": {"code": INTERNAL_CODE, "message": "the server failed; its log says why"}
}

STOPPING: Final = StoreUnavailable("the server stops; try again", outcome_unknown=True)

_STATUS: Final[dict[type[WindlassError], int]] = {
    NotJson: 400,
    Malformed: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NoRoute: 404,
    Lost: 410,
    NotFound: 404,
    WrongMethod: 405,
    Conflict: 409,
    InvalidTransition: 409,
    TooLarge: 413,
    UnsupportedMedia: 415,
    InvalidInput: 422,
    TooManyRequests: 429,
    Overloaded: 503,
    StoreUnavailable: 503,
}


def status_of(error: WindlassError) -> int:
    """Returns the HTTP status of an error."""
    if error.code == "disk_full":
        return 507
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


def headers_of(error: WindlassError) -> dict[str, str]:
    """Returns the headers of an error, such as `Retry-After` where trying later helps."""
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, WrongMethod):
        return {"Allow": error.allowed}
    after = getattr(error, "retry_after_ms", None)
    if after is None and isinstance(error, StoreUnavailable):
        after = 1_000
    return {} if after is None else {"Retry-After": str(max(1, math.ceil(after / 1000)))}
