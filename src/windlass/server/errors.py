"""How errors look over HTTP: a status, and the body every error has."""

import math
from typing import Any, Final

from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from windlass.domain.errors import (
    Conflict,
    InvalidInput,
    InvalidTransition,
    NotFound,
    Overloaded,
    StoreUnavailable,
    WindlassError,
)

_STATUS: Final[dict[type[WindlassError], int]] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    InvalidTransition: 409,
    Overloaded: 503,
    StoreUnavailable: 503,
}

_CODES: Final = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    415: "unsupported_media_type",
    500: "internal",
}


class Forbidden(WindlassError):
    """The token may not do this."""

    code = "forbidden"


class Unauthorized(WindlassError):
    """No token, or one that is not valid."""

    code = "unauthorized"


class DiskFull(WindlassError):
    """Nothing can be written until there is room again."""

    code = "disk_full"


def status_of(error: WindlassError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, Forbidden):
        return 403
    if isinstance(error, Unauthorized):
        return 401
    if error.code == "disk_full":
        return 507
    return _STATUS.get(type(error), 500)


def headers_of(error: WindlassError) -> dict[str, str]:
    """`Retry-After` where coming back later helps."""
    after = getattr(error, "retry_after_ms", None)
    if after is None and isinstance(error, StoreUnavailable):
        after = 1_000
    headers = {} if after is None else {"Retry-After": str(max(1, math.ceil(after / 1000)))}
    if isinstance(error, Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def handle_windlass(_: "Request[Any, Any, Any]", error: WindlassError) -> Response[Any]:
    """Our own errors carry everything a client needs."""
    return Response(error.describe(), status_code=status_of(error), headers=headers_of(error))


def handle_http(_: "Request[Any, Any, Any]", error: HTTPException) -> Response[Any]:
    """Errors of the framework, in the same form."""
    code = _CODES.get(error.status_code, "error")
    body: dict[str, Any] = {"code": code, "message": str(error.detail)}
    if isinstance(error, ValidationException):
        body |= _misfit(error)
    return Response({"error": body}, status_code=error.status_code, headers=error.headers)


def _misfit(error: ValidationException) -> dict[str, Any]:
    extra = error.extra
    first = extra[0] if isinstance(extra, list) and extra else None
    if not isinstance(first, dict):
        return {"code": "invalid_input"}
    message = str(first.get("message", error.detail))
    found: dict[str, Any] = {"code": "invalid_input", "message": message}
    if first.get("key"):
        found["field"] = str(first["key"])
    return found
