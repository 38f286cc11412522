"""How routes are declared: method, path, the action they are, and a handler.

routes = Routes("/api/v1/jobs", "jobs")


@routes.get("/{job:int}", needs=Action.READ_JOBS)
async def show(call: Call, job: Id) -> Job:
    \"\"\"Returns one job with its attempts.\"\"\"
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, NamedTuple, Required, TypedDict, TypeVar, Unpack

from windlass.domain.access.rights import Action
from windlass.operations.dispatch.answers import JSON

EACH: Final = "each"  # call is recorded, although it is a GET
COUNTED: Final = "counted"  # equal calls of a minute share a row

_AFTER_THE_POINT: Final = re.compile(
    r"[:;.]|, (?:all|because|in|once|under|unless|with|within|without)\b"
)
_WORDS: dict[str, str] = {}  # what routes do, by method and path

Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)


class Route(NamedTuple):
    """One route; `path` has placeholders `{name:int}`, `{name:str}` and `{name:path}`."""

    method: str
    path: str
    needs: Action
    handler: Handler
    tag: str
    status: int = 200
    media_type: str = JSON
    body_limit: int = 0  # bytes; 0: that of the server
    raw_body: bool = False  # it takes bytes, not JSON
    audit: str = ""  # how the audit log records successes; empty: each, if it is not a GET
    bulk: bool = False  # takes many jobs at once: the only JSON bodies that may be large
    costly: bool = False  # reads far more than it answers: each caller has only a few at once


class RouteOptions(TypedDict, total=False):
    """What a declaration says beside method and path, as in `Route`."""

    needs: Required[Action]
    status: int
    media_type: str
    body_limit: int
    raw_body: bool
    audit: str
    bulk: bool
    costly: bool


class Routes:
    """Collects the routes of one module, all below one path."""

    def __init__(self, prefix: str, tag: str) -> None:
        self._prefix = prefix
        self._tag = tag
        self._routes: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def get(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[H], H]:
        """Declares a GET route."""
        return self._add("GET", path, options)

    def post(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[H], H]:
        """Declares a POST route."""
        return self._add("POST", path, options)

    def put(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[H], H]:
        """Declares a PUT route."""
        return self._add("PUT", path, options)

    def patch(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[H], H]:
        """Declares a PATCH route."""
        return self._add("PATCH", path, options)

    def delete(self, path: str, **options: Unpack[RouteOptions]) -> Callable[[H], H]:
        """Declares a DELETE route."""
        return self._add("DELETE", path, options)

    def _add(self, method: str, path: str, options: RouteOptions) -> Callable[[H], H]:
        def add(handler: H) -> H:
            whole = self._prefix + path
            told = inspect.getdoc(handler) or ""
            _WORDS[f"{method} {whole}"] = _AFTER_THE_POINT.split(told.partition("\n")[0])[0]
            self._routes.append(
                Route(method=method, path=whole, handler=handler, tag=self._tag, **options)
            )
            return handler

        return add


def words_of(action: str) -> str | None:
    """Returns what a route does, such as "Pauses a queue"; `action` is its method and path."""
    return _WORDS.get(action) or None
