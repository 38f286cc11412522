"""What the audit log learns about one request, whichever way it ended."""

import re
from collections.abc import Hashable, Mapping
from typing import Any, Final

from windlass.domain.access.rights import Identity
from windlass.domain.values.names import NAME_LIMIT
from windlass.operations.dispatch.answers import Complete, Stream
from windlass.operations.dispatch.routes import COUNTED, EACH, Route
from windlass.server.audit.log import AuditLog, Noted, is_recorded
from windlass.server.http.asgi import Scope
from windlass.server.http.callers import source_of
from windlass.server.http.origin import SAFE_METHODS

REQUEST_ID: Final = "X-Request-Id"
_NAMING: Final = re.compile(r"/api/v1/([a-z]+)s/\{name:")  # a kind of object, and which one
_NOTHING: Final[Mapping[str, Any]] = {}


class Seen:
    """What is known of a request so far."""

    __slots__ = ("about", "arguments", "caller", "code", "in_path", "route")

    def __init__(self) -> None:
        self.route: Route | None = None
        self.caller: Identity | None = None
        self.in_path = _NOTHING
        self.arguments = _NOTHING
        self.about = ""  # the object in words, as the handler told
        self.code = ""


def note_call(
    audit: AuditLog, scope: Scope, seen: Seen, reply: Complete | Stream
) -> Complete | Stream:
    """Records a request if it belongs into the audit log; its answer gets the id of its row."""
    route = seen.route
    status = reply.status if isinstance(reply, Complete) else 200
    if route is None:
        return reply
    changes = route.method not in SAFE_METHODS or route.audit == EACH
    if not is_recorded(seen.caller, status, changes):
        return reply
    caller, namespace = seen.caller, _namespace(seen)
    address = source_of(scope)
    about = seen.about or _named(seen)
    key: Hashable = None
    if status >= 400 or caller is None or route.audit == COUNTED:
        name = None if caller is None else (caller.token, caller.name)
        kind = seen.about if status < 400 else seen.code
        key = (name, address, route.method, route.path, namespace, status, kind)
        if audit.repeat(key):
            return reply
    noted = Noted(
        caller=caller,
        address=address,
        action=f"{route.method} {route.path}",
        path=scope["path"],
        namespace=namespace,
        job=seen.in_path.get("job", 0),
        workflow=seen.in_path.get("workflow", 0),
        status=status,
        code=seen.code,
        about=about,
    )
    request = audit.next_request()
    audit.note(noted, request, key)
    headers = {**reply.headers, REQUEST_ID: request}
    if isinstance(reply, Stream):
        return reply._replace(headers=headers)
    return reply._replace(headers=headers)


def _named(seen: Seen) -> str:
    """Returns what the path names, such as "queue `video`"; jobs and workflows are looked up."""
    found = seen.route and _NAMING.match(seen.route.path)
    return f"{found[1]} `{seen.in_path['name']}`" if found and seen.in_path else ""


def _namespace(seen: Seen) -> str:
    """Returns the namespace that the request names, or the only one of its caller."""
    for name, value in seen.arguments.items():
        named = value if name == "namespace" else getattr(value, "namespace", None)
        if isinstance(named, str) and named:
            return named[:NAME_LIMIT]  # it may not have been checked yet
        several = getattr(value, "namespaces", None)
        if isinstance(several, tuple) and len(several) == 1:
            return str(several[0])[:NAME_LIMIT]
    if seen.caller is not None and len(seen.caller.namespaces) == 1:
        return seen.caller.namespaces[0]
    return ""
