"""Generates the reference pages of the interfaces for programs: Python, and HTTP."""

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import windlass
from windlass.client.blocking import resources
from windlass.domain.values.errors import WindlassError
from windlass.server.description import description
from windlass.server.http.replies import STATUS

PYTHON_START: Final = """\
# Python

Every public name of `import windlass`. [Python programs](../guides/python.md) shows how they are
used together. Names that end in `_async` or begin with `Async` are for programs with an event loop:
they have the same methods, to be awaited, and are described with the others only where they differ.
Everything that is not listed here may change in any version.

"""

HTTP_START: Final = """\
# HTTP

Every route of a server, made from its OpenAPI description, which each server also gives at
`/openapi.json`. The types are on [a page of their own](http-types.md). Requests carry a
token in the header `Authorization: Bearer TOKEN`; *needs* is the least role that may call a route
([rights](rights.md)). Bodies are JSON.

A refused request is answered with an `Error`, whose `code` is for programs: 400, 413, 415 and 422
because of the request, 401 and 403 because of the caller, 404, 409, 503 and 507 because of the
current state, 429 because of too many requests.

Routes of one job or workflow take `given_at`: when the caller was given that id, in ms (the `at` of
the answer to a submission). They answer 410 if the id stands for something made later, as after a
restore that nobody announced.

"""

TYPES_START: Final = """\
# HTTP types

The objects in the bodies of requests and answers of the [routes](http.md). A field with *?* may be
missing.

"""

# The sections of the page about Python, with their names; what is left is a value or an error.
SECTIONS: Final = {
    "Clients": ("Client", "AsyncClient", "default_client", "set_default_client"),
    "Tasks": ("task", "named", "Task", "AsyncTask", "NamedTask", "JobSpec"),
    "Inside a job": ("current", "Current", "Retry", "Abort", "Canceled", "Suspended"),
    "Jobs and workflows": (
        "JobHandle", "AsyncJob", "Workflow", "WorkflowHandle", "AsyncWorkflow",
        "AsyncWorkflowBlock", "gather", "gather_async", "as_completed", "as_completed_async",
    ),
    "Durable functions": (
        "step", "step_async", "sleep", "sleep_async", "wait_for", "wait_for_async", "ask",
        "ask_async", "send", "send_async",
    ),
    "In a transaction": (
        "submit_in", "submit_in_async", "submit_many_in", "submit_many_in_async",
        "TransactionJob",
    ),
}  # fmt: skip
MODULE: Final = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z~+])")
FORWARD: Final = re.compile(r"\*?ForwardRef\('(\w+)'\)")
VARIABLE: Final = re.compile(r"[~+](?=[A-Z])")
MARKS: Final[dict[Any, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
MAX_WIDTH: Final = 90


def python_page() -> str:
    """docs/reference/python.md."""
    named = [name for names in SECTIONS.values() for name in names]
    rest = [name for name in windlass.__all__ if name not in named]
    errors = [name for name in rest if issubclass(getattr(windlass, name), BaseException)]
    sections = {
        **SECTIONS,
        "Values": [name for name in rest if name not in errors],
        "Errors": errors,
    }
    attributes = dict(_resources())
    text = PYTHON_START
    for heading, names in sections.items():
        text += f"## {heading}\n\n"
        text += "".join(_public(name, getattr(windlass, name)) for name in names)
        if heading == "Clients":
            text += "".join(
                f"### client.{name}\n\n{_doc(resource)}\n\n" + "".join(_methods(resource))
                for name, resource in attributes.items()
            )
    return text


def _resources() -> Iterator[tuple[str, type]]:
    """Yields what a client has as attributes, such as its pools, with their classes."""
    for name, member in inspect.getmembers(windlass.Client):
        if isinstance(member, property) and not name.startswith("_") and member.fget is not None:
            returned = inspect.get_annotations(member.fget).get("return")
            if resource := vars(resources).get(str(returned)):
                yield name, resource


def _public(name: str, value: Any) -> str:
    text = f"### windlass.{name}\n\n"
    if not inspect.isclass(value):
        return text + _call(name, value) + f"{_doc(value)}\n\n"
    if name.startswith("Async"):
        names = ", ".join(f"`{method}`" for method, _ in _members(value))
        return text + f"{_doc(value)}\n\n" + (f"Methods: {names}.\n\n" if names else "")
    if issubclass(value, WindlassError):
        return text + f"{_doc(value)}\n\n{_error(value)}\n\n"
    if name == "JobSpec":
        return text + f"{_doc(value)} Its fields are the [job options](job.md).\n\n"
    fields = getattr(value, "__struct_fields__", ())
    listed = f"Fields: {', '.join(f'`{field}`' for field in fields)}.\n\n" if fields else ""
    makes = _call(f"windlass.{name}", value) if name == "Client" else ""
    return text + makes + f"{_doc(value)}\n\n" + listed + "".join(_methods(value))


def _error(cls: type[WindlassError]) -> str:
    """Returns what programs know an error by: its base, its code, and the status of the answer."""
    facts = [f"A `{cls.__mro__[1].__name__}`."]
    if isinstance(cls.code, str) and cls.code != WindlassError.code:
        facts.append(f"Code `{cls.code}`.")
    facts += [f"HTTP status {STATUS[kind]}." for kind in cls.__mro__ if kind in STATUS][:1]
    return " ".join(facts)


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yields the public methods and properties of a class that are declared in Windlass."""
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_") or name in getattr(cls, "__struct_fields__", ()):
            continue
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        if inspect.isfunction(member) or isinstance(member, property):
            yield name, member


def _methods(cls: type) -> Iterator[str]:
    for name, member in _members(cls):
        if isinstance(member, property):
            yield f"**`{name}`**: {_doc(member)}\n\n"
        else:
            yield _call(f"{cls.__name__}.{name}", member) + f"{_doc(member)}\n\n"


def _call(name: str, function: Any) -> str:
    """Returns how a function is called, on one line or a line for each parameter."""
    signature = inspect.signature(function)
    parts = list(_parameters(signature))
    returns = signature.return_annotation
    end = "" if returns is inspect.Signature.empty else f" -> {_annotation(returns)}"
    line = f"{name}({', '.join(parts)}){end}"
    if len(line) > MAX_WIDTH:
        line = f"{name}(\n    " + ",\n    ".join(parts) + f",\n){end}"
    return f"```py\n{line}\n```\n\n"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """Yields the parameters, with a star before the first that must be named."""
    starred = False
    for one in signature.parameters.values():
        if one.name in ("self", "cls"):
            continue
        if one.kind is one.KEYWORD_ONLY and not starred:
            yield "*"
        starred = starred or one.kind in (one.KEYWORD_ONLY, one.VAR_POSITIONAL)
        mark = MARKS.get(one.kind, "")
        kind = "" if one.annotation is one.empty else f": {_annotation(one.annotation)}"
        default = "" if one.default is one.empty else f" = {_default(one.default)}"
        yield f"{mark}{one.name}{kind}{default}"


def _default(value: Any) -> str:
    shown = repr(value)
    return "..." if shown.startswith("<") else shown


def _annotation(value: Any) -> str:
    """Returns a type without modules and without the marks of type variables."""
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    text = FORWARD.sub(r"\1", VARIABLE.sub("", MODULE.sub("", text)))
    return text.replace("NoneType", "None")


def _doc(value: Any) -> str:
    return inspect.getdoc(value) or ""


def http_page() -> str:
    """docs/reference/http.md."""
    described = description()
    by_tag: dict[str, list[str]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            section = _operation(method.upper(), path, operation)
            by_tag.setdefault(operation["tags"][0], []).append(section)
    return HTTP_START + "".join(
        f"## {tag}\n\n{''.join(sections)}" for tag, sections in sorted(by_tag.items())
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    status, done = next(iter(operation["responses"].items()))
    text = f"### {method} {path}\n\n{operation['summary']}\n\n"
    facts = [f"Needs: {operation['x-needs']}."]
    if body := operation.get("requestBody"):
        facts.append(f"Body: {_content(body['content'])}.")
    answer = _content(done["content"]) if "content" in done else "nothing"
    facts.append(f"Answer {status}: {answer}.")
    text += " ".join(facts) + "\n\n"
    if parameters := operation["parameters"]:
        text += "| parameter | in | type |\n|---|---|---|\n"
        text += "".join(
            f"| `{one['name']}`{'' if one['required'] else '?'} | {one['in']} "
            f"| {_type(one['schema'])} |\n"
            for one in parameters
        )
        text += "\n"
    return text


def _content(content: dict[str, Any]) -> str:
    return ", ".join(
        _type(one["schema"]) if kind == "application/json" else f"`{kind}`"
        for kind, one in content.items()
    )


def types_page() -> str:
    """docs/reference/http-types.md."""
    schemas = description()["components"]["schemas"]
    return TYPES_START + "".join(_schema(name, schemas[name]) for name in sorted(schemas))


def _schema(name: str, schema: dict[str, Any]) -> str:
    text = f"## {name}\n\n"
    if about := schema.get("description"):
        text += f"{' '.join(about.split())}\n\n"
    properties = schema.get("properties")
    if not properties:
        return text + f"{_type(schema)}\n\n"
    required = schema.get("required", ())
    text += "| field | type | meaning |\n|---|---|---|\n"
    for field, one in properties.items():
        mark = "" if field in required else "?"
        meaning = " ".join(one.get("description", "").split()).replace("|", "\\|")
        text += f"| `{field}`{mark} | {_type(one)} | {meaning} |\n"
    return text + "\n"


def _type(schema: dict[str, Any]) -> str:
    """Returns a schema in words, with links to the types that it names."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name.rpartition('.')[2]}](http-types.md#{name.lower().replace('.', '')})"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _either(_type(one) for one in choices)
    if "enum" in schema:
        return _either(f"`{one}`" for one in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _either(map(str, kind))
    if kind == "array":
        return f"list of {_type(schema['items'])}" if "items" in schema else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return str(kind or "any")


def _either(parts: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(parts))
