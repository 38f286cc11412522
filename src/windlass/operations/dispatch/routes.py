"""How routes are declared (method, path, the action they are, and a handler), and found again.

A request finds its route in a tree of path segments, fixed names before placeholders.

routes = Routes("/api/v1/jobs", "jobs")


@routes.get("/{job:int}", needs=Action.READ_JOBS)
async def show(call: Call, job: Id) -> Job:
    \"\"\"Returns one job with its attempts.\"\"\"
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final, Generic, NamedTuple, Required, TypedDict, TypeVar, Unpack

from windlass.domain.access.rights import Action
from windlass.operations.dispatch.call import JSON

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


T = TypeVar("T")

PLACEHOLDER = re.compile(r"\{(\w+):(int|str|path)\}")


class Match(NamedTuple, Generic[T]):
    """The routes of a path by method, and the text of its placeholders."""

    methods: dict[str, T]
    values: dict[str, str]


class Router(Generic[T]):
    """Maps method and path to a value; empty segments and a final slash do not count."""

    def __init__(self, routes: Iterable[tuple[str, str, T]]) -> None:
        self._root = _Node[T]()
        for method, path, value in routes:
            self._add(method, path, value)

    def find(self, path: str) -> Match[T] | None:
        """Returns what the path leads to, or None."""
        node = self._root
        values: dict[str, str] = {}
        segments = iter(path.split("/"))
        for segment in segments:
            if not segment:
                continue
            fixed = node.fixed.get(segment)
            if fixed is not None:
                node = fixed
            elif node.rest is not None:
                values[node.rest_name] = "/".join([segment, *filter(None, segments)])
                return Match(node.rest, values)
            elif node.child is None or (node.child_is_integer and not _is_integer(segment)):
                return None
            else:
                values[node.child_name] = segment
                node = node.child
        return Match(node.methods, values) if node.methods else None

    def _add(self, method: str, path: str, value: T) -> None:
        node = self._root
        for segment in filter(None, path.split("/")):
            placeholder = PLACEHOLDER.fullmatch(segment)
            if placeholder is None:
                node = node.fixed.setdefault(segment, _Node())
                continue
            name, kind = placeholder.groups()
            if kind == "path":
                node.rest_name = name
                node.rest = node.rest or {}
                node.rest[method] = value
                return
            if node.child is None:
                node.child, node.child_is_integer = _Node(), True
            # Where one route takes any text, the others refuse what is no number themselves.
            node.child_is_integer = node.child_is_integer and kind == "int"
            node.child_name = name
            node = node.child
        node.methods[method] = value


class _Node(Generic[T]):
    """One segment: fixed names below it, or one placeholder, or the rest of the path."""

    __slots__ = (
        "child", "child_is_integer", "child_name", "fixed", "methods", "rest", "rest_name"
    )  # fmt: skip

    def __init__(self) -> None:
        self.fixed: dict[str, _Node[T]] = {}
        self.child: _Node[T] | None = None
        self.child_name = ""
        self.child_is_integer = False
        self.rest: dict[str, T] | None = None
        self.rest_name = ""
        self.methods: dict[str, T] = {}


def _is_integer(segment: str) -> bool:
    return segment.isascii() and segment.removeprefix("-").isdigit()
