"""How errors look over HTTP: a status, and the body every error has."""

import math
import re
from typing import Any, Final

import structlog
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

from windlass.domain.job.job import KEYWORDS
from windlass.domain.suggest import did_you_mean
from windlass.domain.values.errors import (
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

PATH_SHOWN: Final = 200  # characters of what was asked for, in a message
_EXPECTED: Final = re.compile(r"Expected (?P<expected>.*?)(, got (?P<got>.*))?")
_UNKNOWN: Final = re.compile(r"unknown field `(\w+)`")

log = structlog.get_logger("windlass.server")

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


def status_of(error: WindlassError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, Forbidden):
        return 403
    if isinstance(error, Unauthorized):
        return 401
    if error.code == "disk_full":
        return 507
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


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


def handle_http(request: "Request[Any, Any, Any]", error: HTTPException) -> Response[Any]:
    """Errors of the framework, in the same form."""
    code = _CODES.get(error.status_code, "error")
    body: dict[str, Any] = {"code": code, "message": str(error.detail)}
    if isinstance(error, ValidationException):
        body |= _misfit(error)
    elif error.status_code in (404, 405):
        asked = f"{request.method} {request.url.path}"[:PATH_SHOWN]
        body["message"] = f"there is no {asked}: /openapi.json describes what there is"
    elif error.status_code == 400:
        body["field"] = "body"
    elif error.status_code == 413:
        limit = f"at most {request.app.request_max_body_size} bytes"
        body |= {"field": "body", "expected": limit, "message": f"expected body to be {limit}"}
    return Response({"error": body}, status_code=error.status_code, headers=error.headers)


def handle_depth(request: "Request[Any, Any, Any]", _: RecursionError) -> Response[Any]:
    """JSON nested more deeply than any decoder follows."""
    return handle_windlass(request, InvalidInput("body", "JSON of moderate depth", "deeper JSON"))


def handle_unknown(request: "Request[Any, Any, Any]", error: Exception) -> Response[Any]:
    """A bug of ours: the log says which, the client learns no more than that."""
    log.error("unhandled", path=request.url.path, method=request.method, exc_info=error)
    body = {"code": "internal", "message": "the server failed; its log says why"}
    return Response({"error": body}, status_code=500)


def _misfit(error: ValidationException) -> dict[str, Any]:
    extra = error.extra
    first = extra[0] if isinstance(extra, list) and extra else None
    if not isinstance(first, dict):
        return {"code": "invalid_input"}
    field = str(first.get("key") or "data")
    field = "body" if field == "data" else field
    message = str(first.get("message", error.detail))
    if message == "'data'":
        return InvalidInput(field, "JSON", "nothing").describe()["error"]  # type: ignore[return-value]
    unknown = _UNKNOWN.search(message)
    hint = did_you_mean(unknown[1], KEYWORDS) if unknown else ""
    body = {"code": "invalid_input", "message": f"{field}: {message}{hint}", "field": field}
    said = _EXPECTED.fullmatch(message.replace("`", ""))
    if said is not None:
        body |= {name: text for name, text in said.groupdict().items() if text is not None}
    return body
