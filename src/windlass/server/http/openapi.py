"""The OpenAPI description of the routes, generated from their signatures."""

import inspect
from collections.abc import Iterable
from typing import Any, Final, get_args, get_origin

import msgspec

from windlass.domain.access.rights import RIGHTS, Right
from windlass.operations.dispatch.binding import Parameter, Signature, signature_of
from windlass.operations.dispatch.call import JSON, Complete, Reply, Stream
from windlass.operations.dispatch.routes import PLACEHOLDER, Route
from windlass.server.http.replies import NO_CONTENT

REFERENCE: Final = "#/components/schemas/{name}"
ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "What is wrong, for programs."},
                "message": {"type": "string", "description": "The same for people."},
                "field": {"type": "string", "description": "The wrong part of the request."},
                "expected": {"type": "string", "description": "What was expected there."},
                "got": {"description": "What came instead."},
                "retry_after_ms": {"type": "integer", "description": "When to try again."},
                "outcome_unknown": {
                    "type": "boolean",
                    "description": "Whether the request may have been carried out.",
                },
            },
        }
    },
}
_REFUSED: Final = {
    "description": "The server refused: 400, 413, 415 and 422 because of the request, 401 and 403 "
    "because of the caller, 404, 409, 503 and 507 because of the current state.",
    "content": {JSON: {"schema": {"$ref": REFERENCE.format(name="Error")}}},
}


def describe(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """Returns the description of all routes."""
    found = [(route, signature_of(route)) for route in routes]
    types = {t: None for _, signature in found for t in _types_of(signature)}
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route, signature in found:
        path = PLACEHOLDER.sub(r"{\1}", route.path)
        operation = _operation(route, signature, by_type)
        paths.setdefault(path, {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "Windlass", "version": version},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _types_of(signature: Signature) -> list[Any]:
    types = [p.type for p in (*signature.path, *signature.query)]
    if signature.body_name:
        types.append(signature.body_type)
    returned = _returned(signature)
    return types if returned is None else [*types, returned]


def _returned(signature: Signature) -> Any:
    """Returns the type of a JSON reply; None for other replies."""
    returns = signature.returns
    if get_origin(returns) is Reply:
        (returns,) = get_args(returns)
    return None if returns in (bytes, Complete, Stream) else returns


def _operation(route: Route, signature: Signature, schemas: dict[Any, Any]) -> dict[str, Any]:
    summary = (inspect.getdoc(route.handler) or "").partition("\n")[0]
    returned = _returned(signature)
    schema = {"type": "string"} if returned is None else schemas[returned]
    media_type = route.media_type.partition(";")[0]
    operation: dict[str, Any] = {
        "tags": [route.tag],
        "operationId": f"{route.tag}.{route.handler.__name__}",
        "summary": summary,
        "x-action": str(route.needs),
        "x-needs": _needs(RIGHTS[route.needs]),
        "parameters": [
            *(_parameter("path", p, schemas) for p in signature.path),
            *(_parameter("query", p, schemas) for p in signature.query),
        ],
        "responses": {
            str(route.status): _done(route, {media_type: {"schema": schema}}),
            "default": _REFUSED,
        },
    }
    if signature.body_name:
        content = {JSON: {"schema": schemas[signature.body_type]}}
        operation["requestBody"] = {"required": True, "content": content}
    if RIGHTS[route.needs].is_open:
        operation["security"] = []
    return operation


def _done(route: Route, content: dict[str, Any]) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "It was done."}
    return done if route.status == NO_CONTENT else {**done, "content": content}


def _needs(right: Right) -> str:
    """Returns the least role that a route needs, in words."""
    if right.is_open:
        return "open"
    return f"{right.unlimited} of all namespaces" if right.is_fleet_wide else str(right.unlimited)


def _parameter(place: str, parameter: Parameter, schemas: dict[Any, Any]) -> dict[str, Any]:
    schema = dict(schemas[parameter.type])
    if not parameter.is_required and parameter.default is not None:
        schema["default"] = parameter.default
    return {
        "name": parameter.name,
        "in": place,
        "required": parameter.is_required,
        "schema": schema,
    }
