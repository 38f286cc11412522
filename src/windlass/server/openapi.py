"""The description of the interface, with errors as they really look.

The framework describes errors of its own form, which no answer of this server has.
"""

from importlib.metadata import version
from typing import Any, Final

from litestar import Request, Router
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from windlass.domain.access.roles import Role

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
                "field": {"type": "string", "description": "Where in the request it is wrong."},
                "expected": {"type": "string", "description": "What should have come."},
                "got": {"description": "What came instead."},
                "retry_after_ms": {"type": "integer", "description": "When it may work again."},
            },
        }
    },
}
_REFUSED: Final = {
    "description": "It was refused: 400 and 422 for what was said, 401 and 403 for who said it, "
    "404, 409 and 503 for the state of things.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}


class Description(JsonRenderPlugin):
    """Shows the description as JSON."""

    def render(self, request: "Request[Any, Any, Any]", openapi_schema: dict[str, Any]) -> bytes:
        describe_errors(openapi_schema)
        return super().render(request, openapi_schema)


def describe_errors(description: dict[str, Any]) -> None:
    """Let every operation tell of errors, in their own form; doing so again changes nothing."""
    description["components"].setdefault("schemas", {})["Error"] = ERROR
    for operations in description["paths"].values():
        for operation in operations.values():
            answers = operation["responses"]
            answers.pop("400", None)
            answers["default"] = _REFUSED


def openapi_config() -> OpenAPIConfig:
    """What the framework is to describe, and where."""
    return OpenAPIConfig(
        title="Windlass",
        version=version("windlass"),
        openapi_router=Router(
            "/openapi.json",
            route_handlers=[],
            opt={"role": Role.VIEWER},
            include_in_schema=False,
        ),
        render_plugins=[Description(path="/")],
        components=Components(
            security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}
        ),
        security=[{"token": []}],
    )
