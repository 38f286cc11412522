"""Values without annotations: payloads of signals, answers, arguments of named tasks.

Only plain JSON passes, because nobody could tell that a value had been a set or a date.
"""

from typing import Any, Final

from windlass.domain.tasks.references import FILE
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.values.codec import Codec, Misfit, described
from windlass.tasks.values.containers import PlainCodec, encode_items


class _Unchanged(PlainCodec):
    """JSON without special forms."""

    def refuse(self, value: Any) -> Any:
        raise Misfit(self.name, described(value))


class _Named(PlainCodec):
    """Arguments of a task by name: references keep their meaning, and a tuple becomes a list."""

    def refuse(self, value: Any) -> Any:
        if type(value) is tuple:
            return encode_items(self, value)
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
