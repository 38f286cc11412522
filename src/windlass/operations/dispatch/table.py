"""Finds the operation of a call and carries it out, over HTTP and in process.

Whoever calls checks the caller's right (`route.needs`) between the two.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

from windlass.domain.access.rights import RIGHTS, Role
from windlass.domain.values.errors import NotFound
from windlass.engine.fleet.epochs import explain_missing
from windlass.operations.dispatch.binding import GIVEN_AT, Binder, named_by, signature_of
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.errors import Malformed, NoRoute, WrongMethod
from windlass.operations.dispatch.routes import Route, Router

T = TypeVar("T")

REMEMBERED: Final = 4_096  # paths; workers call the same few all the time


class Target(NamedTuple, Generic[T]):
    """The operation that a path leads to, and the arguments in it; None if they do not fit.

    `note` is what the caller of the table wants to know about the route.
    """

    route: Route
    binder: Binder
    note: T
    values: Mapping[str, str]
    arguments: Mapping[str, Any] | None

    def in_path(self) -> Mapping[str, Any]:
        """Returns the arguments in the path; raises `Malformed`."""
        if self.arguments is None:
            return self.binder.bind_path(self.values)  # raises what is wrong with them
        return self.arguments


class Table(Generic[T]):
    """Finds operations by method and path."""

    def __init__(self, routes: Iterable[Route], note: Callable[[Route], T]) -> None:
        self._router = Router((route.method, route.path, route) for route in routes)
        self._note = note
        self.find = lru_cache(REMEMBERED)(self._find)

    def _find(self, method: str, path: str) -> Target[T]:
        found = None if "//" in path else self._router.find(path)
        if found is None:
            raise NoRoute(method, path)
        route = found.methods.get(method)
        if route is None:
            raise WrongMethod(method, path, ", ".join(sorted({*found.methods, "OPTIONS"})))
        binder, arguments = _binder(route), None
        try:
            arguments = binder.bind_path(found.values)
        except Malformed:
            pass  # reported after the caller is checked
        return Target(route, binder, self._note(route), found.values, arguments)


@cache
def _binder(route: Route) -> Binder:
    """Returns what makes the arguments of a route; the same one in all tables of a process."""
    # Identity providers add parameters of their own, and workers may be newer than the server.
    of_others = route.path.startswith("/auth/") or RIGHTS[route.needs].limited is Role.WORKER
    return Binder(signature_of(route), strict=not of_others, many=route.bulk)


async def carry_out(
    call: Call, route: Route, in_path: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Any:
    """Returns what the operation answers; raises `Lost` for what the store has lost."""
    arguments = dict(arguments)
    given_at = arguments.pop(GIVEN_AT, 0)
    try:
        if given_at and (kind := named_by(route.path)):
            await call.services.queries.check_given(kind, {in_path[kind]: given_at}, call.who)
        return await route.handler(call, **in_path, **arguments)
    except NotFound as error:
        raise await explain_missing(call.services.engine.store, error) from None
