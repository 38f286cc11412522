"""Codecs of plain JSON, and of lists, tuples, sets and dicts."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from windlass.domain.tasks.references import FILE
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.handles import reference_of
from windlass.tasks.values.codec import Codec, Misfit, described, escaped, unescaped
from windlass.tasks.values.scalars import MAX_INT, MIN_INT, TEXT, checked_text, too_large

LISTS: Final = frozenset({list})
OBJECTS: Final = frozenset({dict})
SIMPLE: Final = frozenset({str, bool, type(None)})


class PlainCodec(Codec):
    """Plain JSON values, for parameters without an annotation: they pass unchanged."""

    name = "a JSON value"
    kinds = frozenset({dict, list, str, int, float, bool, type(None)})

    def encode(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return checked_text(value)
        if kind in SIMPLE:
            return value
        if kind is int:
            if MIN_INT <= value <= MAX_INT:
                return value
            raise too_large(value)
        if kind is float:
            if math.isfinite(value):
                return value
            raise Misfit("a finite number", repr(value), "send None instead")
        if kind is list:
            return each(self.encode, value)
        if kind is dict:
            return self._encode_dict(value)
        return self.refuse(value)

    def _encode_dict(self, value: dict[Any, Any]) -> Any:
        encoded = {}
        for key, item in value.items():
            if type(key) is not str:
                hint = "annotate it, for example as dict[int, str]"
                raise Misfit("a dict whose keys are text", f"the key {key!r}", hint)
            try:
                encoded[key] = self.encode(item)
            except Misfit as misfit:
                raise misfit.inside(f"[{key!r}]") from None
        return self.escape(encoded)

    def escape(self, encoded: dict[str, Any]) -> dict[str, Any]:
        """Returns a dict escaped, so that it is not read as a reference."""
        return escaped(encoded)

    def decode(self, json: Any) -> Any:
        kind = type(json)
        if kind is list:
            return [self.decode(item) for item in json]
        if kind is dict:
            found = unescaped(json)
            if found is not json:
                return self._decode_literal(found)
            return {key: self.decode(item) for key, item in json.items()}
        return json

    def _decode_literal(self, json: Any) -> Any:
        """Decodes the content of a literal, whose own key is no reference."""
        if type(json) is dict:
            return {key: self.decode(item) for key, item in json.items()}
        return self.decode(json)


PLAIN: Final = PlainCodec()


def each(action: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Encodes or decodes the items of a container; an error names the place."""
    done: list[Any] = []
    try:
        for item in items:
            done.append(action(item))  # noqa: PERF401 - its length is the place of an error
    except Misfit as misfit:
        raise misfit.inside(f"[{len(done)}]") from None
    return done


class ItemsCodec(Codec):
    """A list, set or tuple of any length."""

    kinds = LISTS

    def __init__(self, kind: type, item: Codec, name: str) -> None:
        self.name = name
        self._kind: Any = kind
        self._item = item
        self._unique = issubclass(kind, set | frozenset)

    def parts(self) -> Iterable[Codec]:
        return (self._item,)

    def encode(self, value: Any) -> Any:
        if type(value) is not self._kind:
            return self.refuse(value)
        encoded = each(self._item.encode, value)
        if self._unique:
            _order(encoded)
        return encoded

    def decode(self, json: Any) -> Any:
        if type(json) is not list:
            raise self.reject(json)
        decoded = each(self._item.decode, json)
        if not self._unique:
            return decoded if self._kind is list else self._kind(decoded)
        try:
            made = self._kind(decoded)
        except TypeError as error:
            raise Misfit(self.name, str(error)) from None
        if len(made) != len(decoded):
            raise Misfit(f"{self.name} without duplicate items", "one that has")
        return made


def _order(encoded: list[Any]) -> None:
    """Sorts the items of a set, so that equal sets give equal JSON."""
    try:
        encoded.sort()
    except TypeError:
        encoded.sort(key=repr)


class TupleCodec(Codec):
    """A tuple of a known length: `tuple[int, str]`, or a named one."""

    kinds = LISTS

    def __init__(
        self, items: Sequence[Codec], name: str, kind: type = tuple, fields: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._items = items
        self._encoders = [item.encode for item in items]
        self._decoders = [item.decode for item in items]
        self._kind: Any = kind
        self._fields = fields
        self._make: Callable[[list[Any]], Any] = getattr(kind, "_make", kind)

    def parts(self) -> Iterable[Codec]:
        return self._items

    def encode(self, value: Any) -> Any:
        if type(value) is not self._kind:
            return self.refuse(value)
        if len(value) != len(self._encoders):
            raise Misfit(self.name, f"one of length {len(value)}")
        return _each(self._encoders, value)

    def decode(self, json: Any) -> Any:
        if type(json) is dict and self._fields and set(json) == set(self._fields):
            json = [json[field] for field in self._fields]
        if type(json) is not list or len(json) != len(self._decoders):
            raise self.reject(json)
        return self._make(_each(self._decoders, json))


def _each(actions: Sequence[Callable[[Any], Any]], items: Sequence[Any]) -> list[Any]:
    done: list[Any] = []
    try:
        for action, item in zip(actions, items, strict=True):
            done.append(action(item))
    except Misfit as misfit:
        raise misfit.inside(f"[{len(done)}]") from None
    return done


class DictCodec(Codec):
    """A dict. Keys that are not text become text if unambiguous, else a list of pairs."""

    def __init__(self, key: Codec, value: Codec, name: str) -> None:
        self.name = name
        self._key = key
        self._value = value
        self._ints = key.name == "int"
        self._as_text = key.kinds == TEXT or self._ints
        self.kinds = OBJECTS if self._as_text else LISTS

    def parts(self) -> Iterable[Codec]:
        return (self._key, self._value)

    def encode(self, value: Any) -> Any:
        if type(value) is not dict:
            return self.refuse(value)
        pairs: list[tuple[Any, Any]] = []
        for key, item in value.items():
            try:
                pairs.append((self._encode_key(key), self._value.encode(item)))
            except Misfit as misfit:
                raise misfit.inside(f"[{key!r}]") from None
        return escaped(dict(pairs)) if self._as_text else [list(pair) for pair in pairs]

    def _encode_key(self, key: Any) -> Any:
        encoded = self._key.encode(key)
        if reference_of(key) is not None:
            raise Misfit(self._key.name, "a job", "results of jobs can be values, not keys")
        if self._ints:
            if type(key) is bool:
                raise Misfit("a dict whose keys are ints", f"the key {key!r}")
            return str(encoded)
        return encoded

    def decode(self, json: Any) -> Any:
        if type(json) is list and not self._as_text:
            if not all(type(pair) is list and len(pair) == 2 for pair in json):
                raise Misfit(f"{self.name}, as a list of pairs", "other items")
            return self._made((self._key.decode(key), item) for key, item in json)
        if type(json) is not dict:
            raise self.reject(json)
        json = unescaped(json)
        if type(json) is not dict:
            raise self.reject(json)
        return self._made((self._decode_key(key), item) for key, item in json.items())

    def _made(self, pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
        made = {}
        for key, item in pairs:
            try:
                made[key] = self._value.decode(item)
            except Misfit as misfit:
                raise misfit.inside(f"[{key!r}]") from None
            except TypeError as error:  # a key that cannot be hashed
                raise Misfit(self.name, str(error)) from None
        return made

    def _decode_key(self, key: str) -> Any:
        if not self._ints:
            return self._key.decode(key)
        digits = key.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
            raise Misfit("a dict whose keys are ints", f"the key {key!r}")
        return self._key.decode(int(key))


class _Unchanged(PlainCodec):
    """JSON without special forms."""

    def refuse(self, value: Any) -> Any:
        raise Misfit(self.name, described(value))


class _Named(PlainCodec):
    """Arguments of a task by name: references keep their meaning, and a tuple becomes a list."""

    def refuse(self, value: Any) -> Any:
        if type(value) is tuple:
            return each(self.encode, value)
        reference = getattr(type(value), "__windlass_file__", None)
        return super().refuse(value) if reference is None else {FILE: reference(value)}

    def escape(self, encoded: dict[str, Any]) -> dict[str, Any]:
        return encoded


_UNCHANGED: Final = _Unchanged()

_NAMED: Final = _Named()


def plain_json(field: str, value: Any) -> Any:
    """Returns a value that is already plain JSON; raises `InvalidInput` for all others."""
    _encoded(_UNCHANGED, field, value)
    return value


def named_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a task by name, with handles of jobs replaced by references."""
    return {name: _encoded(_NAMED, f"args.{name}", value) for name, value in arguments.items()}


def _encoded(codec: Codec, field: str, value: Any) -> Any:
    try:
        return codec.encode(value)
    except Misfit as misfit:
        raise InvalidInput(f"{field}{misfit.where}", misfit.expected, misfit.got) from None
    except RecursionError:
        raise InvalidInput(field, "nested less deeply", "a very deep value") from None
