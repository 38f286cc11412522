"""What can be wrong with a call before its operation begins."""

from typing import Final

from windlass.domain.values.errors import InvalidInput, UnknownName, WindlassError

PATH_SHOWN: Final = 200  # characters of a path in a message


class TooLarge(WindlassError):
    """The body of a request is larger than the server accepts."""

    code = "too_large"

    def __init__(self, limit: int, unit: str = "bytes") -> None:
        super().__init__(limit, unit)
        self._most = f"at most {limit} {unit}"

    @property
    def message(self) -> str:
        return f"expected body to be {self._most}"

    def details(self) -> dict[str, object]:
        return {"field": "body", "expected": self._most}


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


class NoRoute(WindlassError):
    """No route has this method and path."""

    code = "not_found"

    def __init__(self, method: str, path: str) -> None:
        super().__init__(method, path)
        self._asked = f"{method} {path}"[:PATH_SHOWN]

    @property
    def message(self) -> str:
        return f"there is no {self._asked}: /openapi.json lists all routes"


class WrongMethod(NoRoute):
    """The path exists, but not with this method."""

    code = "method_not_allowed"

    def __init__(self, method: str, path: str, allowed: str) -> None:
        super().__init__(method, path)
        self.allowed = allowed


class Forbidden(WindlassError):
    """The caller may not do this."""

    code = "forbidden"


class Unauthorized(WindlassError):
    """The request has no valid token."""

    code = "unauthorized"
