"""Turns a request into the arguments of its handler, by the handler's annotations.

A parameter named in the path comes from there, one annotated with `Body` from the JSON body,
every other one from the query. One annotated with `Query` takes the query's values for each field
of its struct. msgspec converts and checks them.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import msgspec

from windlass.domain.job.job import CHOICES, KEYWORDS
from windlass.domain.values.conversion import named_types, read_misfit
from windlass.domain.values.errors import NOT_KNOWN, shorten
from windlass.domain.values.ids import Moment
from windlass.domain.values.json_values import check_depth, too_deep
from windlass.domain.values.names import did_you_mean
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.errors import Malformed, NotJson, TooLarge, UnknownParameter
from windlass.operations.dispatch.routes import PLACEHOLDER, Route
from windlass.ports.loop_time import LongList, gc_paused, give_way, give_way_if_long

T = TypeVar("T")


class _InBody:
    """Marks the parameter that takes the JSON body."""


class _InQuery:
    """Marks a struct whose fields are parameters of the query."""


Body = Annotated[T, _InBody()]
Query = Annotated[T, _InQuery()]

_OF_ONE: Final = re.compile(r"/api/v1/(job|workflow)s/\{\1:int\}")
LARGE: Final = 2**18  # bytes; smaller bodies cannot become large objects
# When the caller got the id in a path (ms). `carry_out` refuses what was made later under that id.
GIVEN_AT: Final = "given_at"
PART_BYTES: Final = 2**16  # a body with more is decoded in parts, if it has any
# In what is decoded in one go, about 0.1 s; commas and brackets count, those in texts too.
MAX_VALUES: Final = 300_000
MAX_PARTED: Final = 4_000_000  # in a body with many jobs: each takes many times its text in memory

_TYPE_NAMES: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "null": "null",
    "object": "an object",
    "str": "text",
}


class Parameter(NamedTuple):
    """One parameter of a handler, in the path or in the query."""

    name: str
    type: Any
    default: Any
    is_list: bool

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty


class Signature(NamedTuple):
    """What a handler takes from a request, and what it returns."""

    path: tuple[Parameter, ...]
    query: tuple[Parameter, ...]  # with the fields of each struct
    structs: Mapping[str, type[msgspec.Struct]]  # parameters whose fields come from the query
    body_name: str  # empty: it takes no body
    body_type: Any
    returns: Any


def signature_of(route: Route) -> Signature:
    """Reads the annotations of a route's handler."""
    hints = get_type_hints(route.handler, include_extras=True)
    in_path = {name for name, _ in PLACEHOLDER.findall(route.path)}
    path: list[Parameter] = []
    query: list[Parameter] = []
    structs: dict[str, type[msgspec.Struct]] = {}
    body_name, body_type = "", None
    for name, declared in inspect.signature(route.handler).parameters.items():
        hint = hints[name]
        if isinstance(hint, type) and issubclass(hint, Call):
            continue
        kind, mark = get_args(hint)[:2] if get_origin(hint) is Annotated else (None, None)
        if isinstance(mark, _InBody):
            body_name, body_type = name, kind
        elif isinstance(mark, _InQuery):
            structs[name] = kind
            query.extend(_fields_of(kind))
        else:
            found = Parameter(name, hint, declared.default, _is_list(hint))
            (path if name in in_path else query).append(found)
    if named_by(route.path):
        query.append(Parameter(GIVEN_AT, Moment, 0, is_list=False))
    return Signature(tuple(path), tuple(query), structs, body_name, body_type, hints["return"])


def named_by(path: str) -> str | None:
    """Returns "job" or "workflow" if the path of a route is that of one, else None."""
    found = _OF_ONE.match(path)
    return None if found is None else found[1]


def _fields_of(struct: type[msgspec.Struct]) -> Iterator[Parameter]:
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        if default is msgspec.NODEFAULT:
            default = inspect.Parameter.empty
        hint = hints[field.name]
        yield Parameter(field.name, hint, default, _is_list(hint))


class Binder:
    """Makes the arguments of one handler."""

    def __init__(self, signature: Signature, strict: bool = True, many: bool = False) -> None:
        """`strict` refuses unknown parameters in the query: a misspelt filter would show all.

        With `many`, the body has many jobs, each of which is decoded by itself.
        """
        self._known = frozenset(p.name for p in signature.query) if strict else None
        self._path = _struct_of("Path", signature.path)
        self._query = _struct_of("Query", signature.query)
        self._lists = frozenset(p.name for p in signature.query if p.is_list)
        self._structs = signature.structs
        self._body_name = signature.body_name
        self._body_type = signature.body_type
        self._decode = msgspec.json.Decoder(signature.body_type).decode
        self._parts = InParts(signature.body_type) if many else None

    @property
    def takes_body(self) -> bool:
        """Whether the handler takes a JSON body."""
        return bool(self._body_name)

    def bind_path(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Returns the arguments that the path carries; raises `Malformed`."""
        return {} if self._path is None else _convert(values, self._path)

    def in_parts(self, body: bytes) -> bool:
        """Returns whether this is a large body with many jobs."""
        return self._parts is not None and len(body) > PART_BYTES

    async def bind_any(self, query: bytes, body: bytes) -> dict[str, Any]:
        """Does the same as `bind`, and a large body with many jobs in steps."""
        if self._parts is None or not self.in_parts(body):
            arguments = self.bind(query, body)
            if len(body) > PART_BYTES:
                await give_way_if_long()
            return arguments
        arguments = self._bind_query(_pairs_of(query))
        return {**arguments, self._body_name: await self._parts.decode(body)}

    def bind(self, query: bytes, body: bytes) -> dict[str, Any]:
        """Returns the other arguments; raises `Malformed`, `NotJson` or `InvalidInput`."""
        arguments = self._bind_query(_pairs_of(query))
        if self._body_name:
            arguments[self._body_name] = self._parse_body(body)
        return arguments

    def bind_given(self, query: Iterable[tuple[str, str]], body: Any) -> dict[str, Any]:
        """Does the same for a caller in this process, whose body is an object.

        It is checked as one that comes as JSON, but for bodies with many jobs: each of those is
        checked when it is submitted.
        """
        arguments = self._bind_query(query)
        if self._body_name:
            arguments[self._body_name] = body if self._parts is not None else self._checked(body)
        return arguments

    def _bind_query(self, query: Iterable[tuple[str, str]]) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        if self._query is not None:
            arguments = _convert(self._parse_query(query), self._query)
            for name, struct in self._structs.items():
                fields = struct.__struct_fields__
                arguments[name] = struct(**{field: arguments.pop(field) for field in fields})
        elif self._known is not None:
            self._parse_query(query)
        return arguments

    def _parse_query(self, query: Iterable[tuple[str, str]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, value in query:
            if self._known is not None and name not in self._known:
                raise _unknown(name, self._known)
            if name in self._lists:
                values.setdefault(name, []).append(value)
            else:
                values[name] = value
        return values

    def _checked(self, body: Any) -> Any:
        if body is None:
            raise Malformed("body", "JSON", "nothing")
        try:
            value = msgspec.convert(msgspec.to_builtins(body, str_keys=True), self._body_type)
        except msgspec.ValidationError as error:
            raise explain_misfit(str(error), "body", {}) from None
        except RecursionError:
            raise too_deep("body") from None
        check_depth(value, "body")
        return value

    def _parse_body(self, body: bytes) -> Any:
        if not body:
            raise Malformed("body", "JSON", "nothing")
        return _decode(body, self._decode)


def _pairs_of(query: bytes) -> Sequence[tuple[str, str]]:
    return parse_qsl(query.decode("latin-1"), keep_blank_values=True) if query else ()


class InParts:
    """Decodes a body with many jobs in steps, between which others have their turn."""

    def __init__(self, whole: type[msgspec.Struct]) -> None:
        hints = get_type_hints(whole, include_extras=True)
        (job,) = get_args(hints["jobs"])
        self._whole = whole
        # The first one ends at anything that is no object, before there are millions of them.
        self._check_outer = _outer_decoder(whole, hints | {"jobs": list[_Object]})
        self._decode_outer = _outer_decoder(whole, hints | {"jobs": list[msgspec.Raw]})
        self._decode_job = msgspec.json.Decoder(job).decode

    async def decode(self, body: bytes) -> Any:
        """Returns the body; raises as `Binder.bind` does."""
        await give_way_if_long()
        if sum(map(body.count, (b",", b"{", b"["))) > MAX_PARTED:
            raise TooLarge(MAX_PARTED, "values")
        await give_way()
        _decode(body, self._check_outer, whole=False)
        await give_way()
        outer: Any = _decode(body, self._decode_outer, whole=False)
        jobs: list[Any] = LongList()
        for number, text in enumerate(outer.jobs):
            jobs.append(_decode(bytes(text), self._decode_job, f"jobs[{number}]"))
            await give_way_if_long()
        await give_way()
        others = {name: getattr(outer, name) for name in outer.__struct_fields__ if name != "jobs"}
        return self._whole(jobs=jobs, **others)


class _Object(msgspec.Struct):
    """Stands for a job that is not looked at yet."""


def _outer_decoder(whole: type[msgspec.Struct], hints: Mapping[str, Any]) -> Callable[[bytes], Any]:
    fields: list[Any] = []
    for field in msgspec.structs.fields(whole):
        default = () if field.default is msgspec.NODEFAULT else (field.default,)
        fields.append((field.name, hints[field.name], *default))
    forbids = whole.__struct_config__.forbid_unknown_fields
    outer = msgspec.defstruct("Outer", fields, kw_only=True, forbid_unknown_fields=forbids)
    return msgspec.json.Decoder(outer).decode


def _decode(
    body: bytes, decode: Callable[[bytes], Any], field: str = "", whole: bool = True
) -> Any:
    """Decodes JSON; without `whole`, most of it is decoded later."""
    if len(body) > LARGE:
        with gc_paused():  # which would look again and again at what is being made
            return _decode_one(body, decode, field, whole)
    return _decode_one(body, decode, field, whole)


def _decode_one(body: bytes, decode: Callable[[bytes], Any], field: str, whole: bool) -> Any:
    if whole and len(body) > LARGE and sum(map(body.count, (b",", b"{", b"["))) > MAX_VALUES:
        raise TooLarge(MAX_VALUES, "values in one " + ("job" if field else "request"))
    try:
        value = decode(body)
    except msgspec.ValidationError as error:
        raise explain_misfit(_inside(str(error), field), "body", {}) from None
    except msgspec.DecodeError as error:
        raise NotJson(f"the body is not valid JSON: {error}") from None
    except RecursionError:
        raise too_deep(field or "body") from None
    except ValueError:
        raise NotJson("the body is not JSON in UTF-8") from None
    if whole:
        check_depth(value, field or "body", body)
    return value


def _inside(text: str, field: str) -> str:
    """Returns a message of msgspec about a part as one about the whole."""
    if not field:
        return text
    start, at, path = text.rpartition(" - at `$")
    return f"{start} - at `$.{field}{path}" if at else f"{text} - at `$.{field}`"


def _unknown(name: str, known: frozenset[str]) -> Malformed:
    expected = f"one of {', '.join(sorted(known))}" if known else "none"
    return UnknownParameter(shorten(name), expected, did_you_mean(name, known))


def _convert(values: Mapping[str, Any], struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Converts text values to the types of `struct`."""
    try:
        converted = msgspec.convert(values, struct, strict=False)
    except msgspec.ValidationError as error:
        raise explain_misfit(str(error), "query", values) from None
    return {name: getattr(converted, name) for name in struct.__struct_fields__}


def explain_misfit(text: str, whole: str, values: Mapping[str, Any]) -> Malformed:
    """Turns a message of msgspec about `whole` (or a part of it) into an error of ours."""
    misfit = read_misfit(text)
    field = misfit.path.lstrip(".")
    inside = f"{field}." if field else ""
    if misfit.missing is not None:
        inner = f"{inside}{misfit.missing}"
        return Malformed(inner, "given", "nothing", f"{inner} is missing")
    if misfit.unknown is not None:
        inner = f"{inside}{misfit.unknown}"
        hint = did_you_mean(misfit.unknown, KEYWORDS) if field.startswith("jobs[") else ""
        message = f"{inner} is not a known field{hint}"
        return Malformed(inner, "a known field", misfit.unknown, message)
    field = field or whole
    choices = CHOICES.get(field.rpartition(".")[2])
    if misfit.types is None and choices is not None:
        return Malformed(
            field, f"one of {', '.join(choices)}", misfit.what.partition(" value ")[2].strip("'")
        )
    if misfit.types is None:
        return Malformed(field, "valid", NOT_KNOWN, f"{field}: {misfit.what}")
    got = named_types(misfit.got, _TYPE_NAMES) if misfit.got else NOT_KNOWN
    expected = named_types(misfit.types, _TYPE_NAMES) + misfit.more
    return Malformed(field, expected, values.get(field, got))


def _struct_of(name: str, parameters: tuple[Parameter, ...]) -> type[msgspec.Struct] | None:
    if not parameters:
        return None
    fields: list[Any] = [
        (p.name, p.type) if p.is_required else (p.name, p.type, p.default) for p in parameters
    ]
    return msgspec.defstruct(name, fields, kw_only=True)


def _is_list(hint: Any) -> bool:
    """Returns whether a query parameter may be repeated."""
    if get_origin(hint) is list:
        return True
    return any(_is_list(part) for part in get_args(hint))
