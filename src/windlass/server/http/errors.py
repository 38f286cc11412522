"""How errors look over HTTP: a status, headers, and the body that every error has."""

import math
from typing import Any, Final

from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    InvalidTransition,
    Lost,
    NotFound,
    Overloaded,
    StoreUnavailable,
    TooManyRequests,
    WindlassError,
)
from windlass.operations.dispatch.errors import (
    Forbidden,
    Malformed,
    NoRoute,
    NotJson,
    TooLarge,
    Unauthorized,
    WrongMethod,
)


class UnsupportedMedia(WindlassError):
    """The route does not take a body of this type."""

    code = "unsupported_media_type"

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(f"expected Content-Type {expected}, got {got[:100]}")


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
