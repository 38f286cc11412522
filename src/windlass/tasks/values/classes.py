"""Codecs of classes with fields, of enumerations and literals."""

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.values.errors import shorten
from windlass.tasks.values.codec import Codec, Misfit, escaped, unescaped
from windlass.tasks.values.containers import OBJECTS
from windlass.tasks.values.unions import has_reference, same

_AS_BASE64: Final = "give it ConfigDict(ser_json_bytes='base64', val_json_bytes='base64')"
SIMPLE: Final = (str, int, bool, float, type(None))


class Field(NamedTuple):
    """A field of a class: its name in JSON, and as an argument; None if it is not given there."""

    name: str
    key: str
    argument: str | None
    required: bool


class Layout(NamedTuple):
    """The fields of a class; `exact`: it is built from them without code of its own."""

    fields: Sequence[Field]
    exact: bool
    tag: tuple[str, Any] | None = None


def layout_of(kind: type) -> Layout | None:
    """Returns the layout of a dataclass, an attrs class or a Struct; None for other types."""
    if dataclasses.is_dataclass(kind):
        own = "__post_init__" in dir(kind) or not _is_generated(kind)
        found = [
            Field(f.name, f.name, f.name if f.init else None, f.init and not _has_default(f))
            for f in dataclasses.fields(kind)
        ]
        return Layout(found, not own and all(field.argument for field in found))
    if issubclass(kind, msgspec.Struct):
        config = kind.__struct_config__
        tag = None if config.tag is None else (str(config.tag_field), config.tag)
        listed = [
            Field(f.name, f.encode_name, f.name, f.required) for f in msgspec.structs.fields(kind)
        ]
        return Layout(listed, "__post_init__" not in dir(kind), tag)
    attributes = getattr(kind, "__attrs_attrs__", None)
    if attributes is None:
        return None
    listed = [
        Field(a.name, a.name, a.alias if a.init else None, a.init and _is_nothing(a.default))
        for a in attributes
    ]
    return Layout(listed, exact=False)  # converters and validators may change anything


def _is_nothing(default: object) -> bool:
    return type(default).__name__ == "_Nothing"


def _has_default(field: "dataclasses.Field[Any]") -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


def _is_generated(kind: type) -> bool:
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    return bool(parameters is not None and parameters.init and "__init__" in vars(kind))


class ClassCodec(Codec):
    """A class with fields. Their codecs are made when first needed: a class may contain itself."""

    kinds = OBJECTS

    def __init__(
        self, kind: type, layout: Layout, name: str, fields: Callable[[], Mapping[str, Codec]]
    ) -> None:
        self.name = name
        self._kind = kind
        self._layout = layout
        self._make_fields = fields

    @cached_property
    def _fields(self) -> list[tuple[Field, Codec]]:
        codecs = self._make_fields()
        return [(field, codecs[field.name]) for field in self._layout.fields]

    def parts(self) -> Iterable[Codec]:
        return (codec for _, codec in self._fields)

    def encode(self, value: Any) -> Any:
        if type(value) is not self._kind:
            return self.refuse(value)
        encoded: dict[str, Any] = {}
        if self._layout.tag is not None:
            encoded[self._layout.tag[0]] = self._layout.tag[1]
        for field, codec in self._fields:
            try:
                encoded[field.key] = codec.encode(getattr(value, field.name))
            except Misfit as misfit:
                raise misfit.inside(f".{field.name}") from None
            except AttributeError:
                raise Misfit(f"{self.name} with all its fields", f"no {field.name}") from None
        if not self._layout.exact and not has_reference(encoded):
            check_return(self, encoded, value)
        return encoded

    def decode(self, json: Any) -> Any:
        if type(json) is not dict:
            raise self.reject(json)
        left = dict(json)
        if self._layout.tag is not None:
            key, tag = self._layout.tag
            if left.pop(key, tag) != tag:
                raise self.reject(json)
        arguments: dict[str, Any] = {}
        later: dict[str, Any] = {}
        for field, codec in self._fields:
            if field.key not in left:
                if field.required:
                    raise Misfit(self.name, f"an object without the field {field.key}")
                continue
            try:
                value = codec.decode(left.pop(field.key))
            except Misfit as misfit:
                raise misfit.inside(f".{field.key}") from None
            if field.argument is None:
                later[field.name] = value
            else:
                arguments[field.argument] = value
        if left:
            raise Misfit(self.name, f"an object with the field {next(iter(left))}")
        return self._made(arguments, later)

    def _made(self, arguments: Mapping[str, Any], later: Mapping[str, Any]) -> Any:
        try:
            made = self._kind(**arguments)
            for name, value in later.items():
                object.__setattr__(made, name, value)
        except Exception as error:  # of the class's own checks
            raise Misfit(self.name, f"{type(error).__name__}: {error}") from None
        return made


def check_return(codec: Codec, encoded: Any, value: Any) -> None:
    """Refuses a value that its own class would not restore unchanged."""
    try:
        back = codec.decode(encoded)
    except Misfit as misfit:
        hint = f"it cannot be restored from its JSON: {misfit.got}"
        raise Misfit(codec.name, shorten(value), hint) from None
    if not same(back, value):
        hint = f"restored from its JSON, it becomes {shorten(back)}"
        raise Misfit(codec.name, shorten(value), hint)


class PydanticCodec(Codec):
    """A pydantic model, which writes and reads itself by its own rules."""

    kinds = frozenset({dict, list, str, int, float, bool, type(None)})

    def __init__(self, kind: Any) -> None:
        self.name = kind.__name__
        self._kind = kind

    def encode(self, value: Any) -> Any:
        if type(value) is not self._kind:
            return self.refuse(value)
        try:
            encoded = value.model_dump(mode="json", by_alias=True)
        except Exception as error:  # errors of pydantic, and of the model's serializers
            hint = _AS_BASE64 if isinstance(error, UnicodeError) else ""
            raise Misfit(self.name, f"{type(error).__name__}: {error}", hint) from None
        encoded = escaped(encoded) if type(encoded) is dict else encoded
        check_return(self, encoded, value)
        return encoded

    def decode(self, json: Any) -> Any:
        body = msgspec.json.encode(unescaped(json) if type(json) is dict else json)
        try:
            return self._kind.model_validate_json(body)
        except Exception as error:  # errors of pydantic, and of the model's validators
            raise Misfit(self.name, str(error).replace("\n", " ")) from None


class TypedDictCodec(Codec):
    """A dict with known keys."""

    kinds = OBJECTS

    def __init__(
        self, name: str, required: frozenset[str], fields: Callable[[], Mapping[str, Codec]]
    ) -> None:
        self.name = name
        self._required = required
        self._make_fields = fields

    @cached_property
    def _fields(self) -> Mapping[str, Codec]:
        return self._make_fields()

    def parts(self) -> Iterable[Codec]:
        return self._fields.values()

    def encode(self, value: Any) -> Any:
        if type(value) is not dict:
            return self.refuse(value)
        encoded = self._each(value, lambda codec, item: codec.encode(item))
        return escaped(encoded)

    def decode(self, json: Any) -> Any:
        found = unescaped(json) if type(json) is dict else json
        if type(found) is not dict:
            raise self.reject(json)
        return self._each(found, lambda codec, item: codec.decode(item))

    def _each(self, items: dict[Any, Any], action: Callable[[Codec, Any], Any]) -> dict[str, Any]:
        missing = self._required - items.keys()
        if missing:
            raise Misfit(self.name, f"a dict without the key {min(missing)}")
        done: dict[str, Any] = {}
        for key, item in items.items():
            codec = self._fields.get(key)
            if codec is None:
                raise Misfit(self.name, f"a dict with the key {key!r}")
            try:
                done[key] = action(codec, item)
            except Misfit as misfit:
                raise misfit.inside(f"[{key!r}]") from None
        return done


class EnumCodec(Codec):
    """An enumeration: by value if that is plain JSON, else by name."""

    def __init__(self, kind: type[enum.Enum]) -> None:
        self.name = kind.__name__
        self._kind = kind
        values = [member.value for member in kind]
        self._by_value = all(type(value) in SIMPLE for value in values)
        found = frozenset(map(type, values)) if self._by_value else frozenset({str})
        self.kinds = found | {int} if issubclass(kind, enum.Flag) else found

    def encode(self, value: Any) -> Any:
        if type(value) is not self._kind:
            return self.refuse(value)
        return value.value if self._by_value else value.name

    def decode(self, json: Any) -> Any:
        if type(json) not in self.kinds:
            raise self.reject(json)
        try:
            return self._kind(json) if self._by_value else self._kind[json]
        except (ValueError, KeyError):
            listed = ", ".join(
                shorten(m.value if self._by_value else m.name) for m in list(self._kind)[:10]
            )
            raise Misfit(f"{self.name} ({listed})", shorten(json)) from None


class LiteralCodec(Codec):
    """One of a few given values."""

    def __init__(self, values: Sequence[Any], codecs: Sequence[Codec], name: str) -> None:
        self.name = name
        self._values = values
        self._encoded = [codec.encode(v) for codec, v in zip(codecs, values, strict=True)]
        self.kinds = frozenset(map(type, self._encoded))

    def encode(self, value: Any) -> Any:
        for known, encoded in zip(self._values, self._encoded, strict=True):
            if same(known, value):
                return encoded
        return self.refuse(value)

    def decode(self, json: Any) -> Any:
        for known, encoded in zip(self._values, self._encoded, strict=True):
            if same(encoded, json):
                return known
        raise self.reject(json)
