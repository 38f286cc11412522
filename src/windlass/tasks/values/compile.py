"""Makes codecs for annotations; each is made once per process.

It also resolves type variables of generic classes, even in the bases of a class.
"""

import collections.abc
import enum
import sys
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from windlass.tasks.handles import reference_of
from windlass.tasks.values.classes import (
    ClassCodec,
    EnumCodec,
    LiteralCodec,
    PydanticCodec,
    TypedDictCodec,
    layout_of,
)
from windlass.tasks.values.codec import Codec, Misfit
from windlass.tasks.values.containers import PLAIN, DictCodec, ItemsCodec, TupleCodec
from windlass.tasks.values.scalars import NOTHING, SCALARS, PathCodec
from windlass.tasks.values.unions import OptionalCodec, UnionCodec

Variables = Mapping[Any, Any]


def variables_of(generic: Any, arguments: tuple[Any, ...]) -> Variables:
    """Returns the values of a generic class's or alias's type variables, given its arguments."""
    parameters = getattr(generic, "__parameters__", ()) or getattr(generic, "__type_params__", ())
    return dict(zip(parameters, arguments, strict=False))


def substituted(annotation: Any, variables: Variables) -> Any:
    """Returns an annotation with its type variables replaced; unknown ones stay."""
    if isinstance(annotation, typing.TypeVar):
        return variables.get(annotation, annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if typing.get_origin(annotation) is None or not any(one in variables for one in parameters):
        return annotation
    return annotation[tuple(variables.get(one, one) for one in parameters)]


def variables_by_class(kind: type, variables: Variables) -> dict[type, Variables]:
    """Returns the values of the type variables of a class and of its bases.

    In `class Users(Page[User])`, the `T` of `Page` is `User`; the same `T` may have another value
    in another base.
    """
    found = {kind: variables}
    for base in vars(kind).get("__orig_bases__", kind.__bases__):
        origin = typing.get_origin(base) or base
        if isinstance(origin, type):
            given = [substituted(one, variables) for one in typing.get_args(base)]
            inner = variables_of(origin, tuple(given))
            for owner, known in variables_by_class(origin, inner).items():
                found.setdefault(owner, known)
    return found


_NOTHING: Final = object()
_KNOWN: Final[dict[Any, Codec]] = {**SCALARS, Path: PathCodec()}
_MADE: Final[dict[tuple[Any, str], Codec]] = {}  # by annotation as written
_ABSTRACT: Final[dict[Any, tuple[type, ...]]] = {
    collections.abc.Sequence: (list, tuple),
    collections.abc.MutableSequence: (list,),
    collections.abc.Set: (set, frozenset),
    collections.abc.MutableSet: (set,),
    collections.abc.Collection: (list, tuple, set, frozenset),
    collections.abc.Iterable: (list, tuple, set, frozenset),
}
_MAPPINGS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class UnsupportedCodec(Codec):
    """A type that cannot be encoded; only handles of jobs that yield JSON could replace it."""

    kinds: frozenset[type] = frozenset()

    def __init__(self, annotation: Any) -> None:
        self.name = name_of(annotation)

    def encode(self, value: Any) -> Any:
        return self.refuse(value)

    def refuse(self, value: Any) -> Any:
        if reference_of(value) is not None:
            return super().refuse(value)
        raise self.reject(value)

    def reject(self, _: Any) -> Misfit:
        hint = "use a dataclass or another supported type"
        return Misfit("of a supported type", self.name, hint)

    def decode(self, json: Any) -> Any:
        if reference_of(json) is not None:  # of a step that returned handles
            return json
        raise self.reject(json)


def codec_for(annotation: Any) -> Codec:
    """Returns the codec of an annotation, whose names are resolved."""
    if annotation is Any or annotation is object or annotation is _NOTHING:
        return PLAIN
    try:
        found = _KNOWN.get(annotation) or _MADE.get((annotation, repr(annotation)))
    except TypeError:  # an unhashable one, such as Literal[[]]
        return UnsupportedCodec(annotation)
    if found is None:
        # `str | date` equals `date | str`, but differs: the first member that fits is used.
        found = _MADE[annotation, repr(annotation)] = _make(annotation)
    return found


def _make(annotation: Any) -> Codec:
    origin = typing.get_origin(annotation)
    if origin is None:
        return _make_bare(annotation)
    arguments = typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _make_union(annotation, [codec_for(a) for a in arguments])
    if origin is typing.Literal:
        codecs = [codec_for(type(value)) for value in arguments]
        return LiteralCodec(arguments, codecs, name_of(annotation))
    if origin in (typing.Annotated, typing.Final, typing.Required, typing.NotRequired):
        return codec_for(arguments[0])
    return _make_generic(annotation, origin, arguments)


def _make_generic(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> Codec:
    name = name_of(annotation)
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
        return TupleCodec([codec_for(a) for a in arguments], name)
    if origin in (list, set, frozenset, tuple):
        return ItemsCodec(origin, codec_for(arguments[0]), name)
    if origin in _MAPPINGS:
        key, value = arguments
        return DictCodec(codec_for(key), codec_for(value), name)
    if origin in _ABSTRACT:
        item = codec_for(arguments[0])
        short = name_of(arguments[0])
        members = [
            ItemsCodec(kind, item, f"{kind.__name__}[{short}]") for kind in _ABSTRACT[origin]
        ]
        return members[0] if len(members) == 1 else UnionCodec(members, name, ranked=True)
    alias = getattr(origin, "__value__", None)  # of `type Pair[T] = …`
    inner = variables_of(origin, arguments)
    if alias is not None:
        return codec_for(substituted(alias, inner))
    if isinstance(origin, type):
        return _make_class(origin, name, inner)
    return UnsupportedCodec(annotation)


def _make_bare(annotation: Any) -> Codec:
    if isinstance(annotation, typing.TypeVar):
        return PLAIN if annotation.__bound__ is None else codec_for(annotation.__bound__)
    if isinstance(annotation, typing.NewType):
        return codec_for(annotation.__supertype__)
    alias = getattr(annotation, "__value__", None)  # of `type Name = …`
    if alias is not None and type(annotation).__name__ == "TypeAliasType":
        return codec_for(alias)
    if annotation in (typing.NoReturn, typing.Never):
        return SCALARS[None]
    if annotation in (list, set, frozenset, tuple):
        return ItemsCodec(annotation, PLAIN, annotation.__name__)
    if annotation in _MAPPINGS:
        return DictCodec(SCALARS[str], PLAIN, annotation.__name__)
    if annotation in _ABSTRACT:
        return codec_for(annotation[Any])
    if isinstance(annotation, type):
        return _make_class(annotation, annotation.__name__, {})
    return UnsupportedCodec(annotation)


def _make_union(annotation: Any, members: list[Codec]) -> Codec:
    others = [member for member in members if member is not NOTHING]
    takes_none = any(member.kinds & NOTHING.kinds for member in others)
    if len(others) == len(members) or takes_none:  # such as an enum with the value None
        return UnionCodec(members, name_of(annotation))
    if len(others) == 1:
        return OptionalCodec(others[0])
    return OptionalCodec(UnionCodec(others, name_of(annotation)))


def _make_class(kind: Any, name: str, variables: Variables) -> Codec:
    if issubclass(kind, enum.Enum):
        return EnumCodec(kind)
    if typing.is_typeddict(kind):
        return TypedDictCodec(name, _required_keys(kind), _fields_of(kind, variables))
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        codecs = _fields_of(kind, variables)()
        items = [codecs.get(field, PLAIN) for field in kind._fields]
        return TupleCodec(items, name, kind, kind._fields)
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and issubclass(kind, pydantic.BaseModel):
        return PydanticCodec(kind)
    layout = layout_of(kind)
    if layout is None:
        return UnsupportedCodec(kind)
    return ClassCodec(kind, layout, name, _fields_of(kind, variables))


def _required_keys(kind: Any) -> frozenset[str]:
    """Returns the keys that a `TypedDict` must have.

    Python itself does not see `Required` and `NotRequired` in annotations that are text.
    """
    required = set(kind.__required_keys__)
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except Exception:  # Evaluating text can raise anything.
        return frozenset(required)
    for name, hint in hints.items():
        while typing.get_origin(hint) is typing.Annotated:
            hint = typing.get_args(hint)[0]
        if typing.get_origin(hint) is typing.NotRequired:
            required.discard(name)
        elif typing.get_origin(hint) is typing.Required:
            required.add(name)
    return frozenset(required)


def _fields_of(kind: Any, variables: Variables) -> Callable[[], Mapping[str, Codec]]:
    def fields() -> Mapping[str, Codec]:
        found: dict[str, Codec] = _Fields()
        known = variables_by_class(kind, variables)
        if typing.is_typeddict(kind):  # It already has the annotations of its bases.
            known = {kind: {k: v for each in reversed(known.values()) for k, v in each.items()}}
        for owner in reversed(kind.__mro__):
            space = vars(sys.modules.get(owner.__module__, types))
            names = {owner.__name__: owner}
            for name, annotation in vars(owner).get("__annotations__", {}).items():
                looked_up = resolved(annotation, space, names)
                found[name] = codec_for(substituted(looked_up, known.get(owner, {})))
        return found

    return fields


class _Fields(dict[str, Codec]):
    """Codecs by field name; a field without an annotation takes plain JSON."""

    def __missing__(self, name: str) -> Codec:
        return PLAIN


def resolved(annotation: Any, space: Mapping[str, Any], local: Mapping[str, Any]) -> Any:
    """Returns an annotation with its names resolved; an unknown one counts as none."""
    holder = SimpleNamespace(__annotations__={"it": annotation})
    try:
        hints = typing.get_type_hints(holder, dict(space), dict(local))
    except Exception:  # Evaluating text can raise anything; then only JSON passes.
        return _NOTHING
    return hints["it"]


def name_of(annotation: Any) -> str:
    """Returns an annotation as people write it."""
    if isinstance(annotation, type) and typing.get_origin(annotation) is None:
        return annotation.__name__
    return repr(annotation).replace("typing.", "").replace("collections.abc.", "")


def name_for(kind: type) -> str | None:
    """Returns how to annotate a parameter for values of this type; None if unsupported."""
    if kind in (list, tuple, set, frozenset):
        return f"{kind.__name__}[…]"
    if kind is dict:
        return "dict[…, …]"
    if issubclass(kind, Path):
        return "Path"
    codec = codec_for(kind)
    return None if isinstance(codec, UnsupportedCodec) else codec.name
