"""The codecs of a function's parameters and result, made when it is first called."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from windlass.domain.tasks.references import RESULT, references_in
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.handles import REFERRED
from windlass.tasks.values.codec import Codec, Misfit
from windlass.tasks.values.compile import codec_for, resolved
from windlass.tasks.values.containers import PLAIN
from windlass.tasks.values.scalars import may_hold_files

TOO_DEEP = Misfit("nested less deeply", "a very deep value")


class Parameter(NamedTuple):
    """A parameter of a function, and the codec of its values."""

    name: str
    codec: Codec


class CallCodec:
    """The codecs for the arguments and the result of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        plain = inspect.unwrap(function)
        space = getattr(plain, "__globals__", {})
        signature = inspect.signature(function)
        self._function = getattr(function, "__qualname__", repr(function))
        self._positional: list[Parameter] = []
        self._named: dict[str, Parameter] = {}
        self._rest: Parameter | None = None
        self._others: Parameter | None = None
        self._needed = 0  # arguments by position; -1: some are needed by name
        for name, parameter in signature.parameters.items():
            self._add(parameter, Parameter(name, _codec(parameter.annotation, space)))
        returned = signature.return_annotation
        self.result = _codec(returned, space)

    def _add(self, parameter: inspect.Parameter, made: Parameter) -> None:
        kind = parameter.kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            self._rest = made
        elif kind is inspect.Parameter.VAR_KEYWORD:
            self._others = made
        else:
            if kind is not inspect.Parameter.KEYWORD_ONLY:
                self._positional.append(made)
            if kind is not inspect.Parameter.POSITIONAL_ONLY:
                self._named[made.name] = made
            if parameter.default is inspect.Parameter.empty and self._needed >= 0:
                by_name = kind is inspect.Parameter.KEYWORD_ONLY
                self._needed = -1 if by_name else self._needed + 1

    @cached_property
    def may_return_files(self) -> bool:
        """Returns whether a result can contain a `Path`."""
        return may_hold_files(self.result)

    def fits(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Returns whether the function surely takes these; False if a full check is needed."""
        if kwargs or self._needed < 0 or len(args) < self._needed:
            return False
        return self._rest is not None or len(args) <= len(self._positional)

    def encode(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments as plain JSON; raises `InvalidInput` with the parameter."""
        return self._each(args, kwargs, encoding=True)

    def decode(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Returns the arguments as annotated; raises `InvalidInput` with the parameter."""
        return self._each(args, kwargs, encoding=False)

    def encode_result(self, value: Any, *, handles: bool = False) -> Any:
        """Returns a result as plain JSON; raises `InvalidInput`, also for handles of jobs.

        With `handles`, these become references, as among arguments.
        """
        before = next(REFERRED)
        try:
            encoded = self.result.encode(value)
        except Misfit as misfit:
            raise _refusal(self._result_name(misfit), misfit) from None
        except RecursionError:
            raise _refusal(self._result_name(TOO_DEEP), TOO_DEEP) from None
        if not handles and next(REFERRED) - before > 1:
            self._refuse_handles(encoded)
        return encoded

    def _refuse_handles(self, encoded: Any) -> None:
        for job in references_in(encoded, RESULT):
            hint = "return its id, or pass the handle to the job that needs the result"
            result = self._result_name(Misfit("", ""))
            raise InvalidInput(result, "a value", f"the handle of job {job}", hint)

    def decode_result(self, json: Any) -> Any:
        """Returns a result as annotated; raises `InvalidInput`."""
        try:
            return self.result.decode(json)
        except Misfit as misfit:
            raise _refusal(self._result_name(misfit), misfit) from None

    def _result_name(self, misfit: Misfit) -> str:
        return f"the result of {self._function}{misfit.where}"

    def _each(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], *, encoding: bool
    ) -> tuple[list[Any], dict[str, Any]]:
        listed: list[Any] = []
        named: dict[str, Any] = {}
        known = len(self._positional)
        name = ""
        try:
            for place, value in enumerate(args):
                found = self._positional[place] if place < known else self._rest
                name, codec = found or (f"[{place}]", PLAIN)
                listed.append(codec.encode(value) if encoding else codec.decode(value))
            for name, value in kwargs.items():
                codec = (self._named.get(name) or self._others or (name, PLAIN))[1]
                named[name] = codec.encode(value) if encoding else codec.decode(value)
        except Misfit as misfit:
            raise _refusal(f"args.{name}{misfit.where}", misfit) from None
        except RecursionError:
            raise _refusal(f"args.{name}", TOO_DEEP) from None
        return listed, named


def _codec(annotation: Any, space: Mapping[str, Any]) -> Codec:
    if annotation is inspect.Parameter.empty:
        return PLAIN
    return codec_for(resolved(annotation, space, {}))


def _refusal(field: str, misfit: Misfit) -> InvalidInput:
    return InvalidInput(field, misfit.expected, misfit.got, misfit.hint)
