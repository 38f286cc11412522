"""The part of the solver file about the matrix: targets, sanitizers and engines.

```yaml
matrix:
  targets: [parse, print]
  sanitizers:
    - {name: address, env: {CFLAGS: -fsanitize=address}}
    - {name: undefined, env: {CFLAGS: -fsanitize=undefined}}
  exclude: [{target: print, sanitizer: undefined}]
```
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean
from windlass_fuzz.buckets.layout import check_name
from windlass_fuzz.errors import InvalidSetting

MAX_COMBINATIONS: Final = 32  # combinations: each is built and fuzzed for every commit
MAX_NAME: Final = 64  # characters of a combination's name, which is a part of keys
MANY: Final = 1_000  # maximum values and rows that we read


class Overrides(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a value of the matrix changes.

    `env` is added to the environment of builds and of runs, `flags` are added to the build command,
    `options` to the engine's options. `binaries`, `tests`, `input_timeout` and `memory` replace
    those of the file. Combinations of a target share inputs if their `format` is the same.
    """

    env: Mapping[str, str] = {}
    flags: tuple[str, ...] = ()
    options: Mapping[str, Any] = {}
    binaries: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    input_timeout: str = ""
    memory: str = ""
    format: str = ""

    def with_more(self, more: "Overrides") -> "Overrides":
        """Returns both together; `more` wins."""
        return Overrides(
            env={**self.env, **more.env}, flags=(*self.flags, *more.flags),
            options={**self.options, **more.options}, binaries=more.binaries or self.binaries,
            tests=more.tests or self.tests,
            input_timeout=more.input_timeout or self.input_timeout,
            memory=more.memory or self.memory, format=more.format or self.format,
        )  # fmt: skip


class MatrixValue(Overrides, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A target, a sanitizer or an engine: its name, and what it changes."""

    name: str


class ExcludedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Leaves out the combinations that have all of these values."""

    target: str = ""
    sanitizer: str = ""
    engine: str = ""


class IncludedRow(Overrides, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Adds a combination, or changes an existing one."""

    target: str = ""
    sanitizer: str = ""
    engine: str = ""


class MatrixSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The values of the matrix. A value is a name, or a name and what it changes."""

    targets: tuple[str | MatrixValue, ...] = ()
    sanitizers: tuple[str | MatrixValue, ...] = ()
    engines: tuple[str | MatrixValue, ...] = ()
    exclude: tuple[ExcludedRow, ...] = ()
    include: tuple[IncludedRow, ...] = ()


class Names(NamedTuple):
    """The values of a combination; an axis without values is ""."""

    target: str = ""
    sanitizer: str = ""
    engine: str = ""

    @property
    def joined(self) -> str:
        return "-".join(part for part in self if part)


class Chosen(NamedTuple):
    """A combination: its values, and what they change."""

    names: Names
    overrides: Overrides


_AXES: Final = ("target", "sanitizer", "engine")
_Axis = Mapping[str, Overrides]


def choose_combinations(matrix: MatrixSettings) -> tuple[Chosen, ...]:
    """Returns the combinations in the order of the file; errors name the key."""
    axes = (
        _axis(matrix.targets, "matrix.targets"),
        _axis(matrix.sanitizers, "matrix.sanitizers"),
        _axis(matrix.engines, "matrix.engines", engines=True),
    )
    if not any(axes):
        message = "matrix is empty: list targets, sanitizers or engines, or leave it out"
        raise InvalidSetting("matrix", message)
    if len(matrix.exclude) + len(matrix.include) > MANY:
        raise InvalidInput("matrix", f"at most {MANY} rows", "more")
    excluded = [_excluded(row, axes) for row in matrix.exclude]
    left = {names: one for names, one in _product(axes) if not _matches(names, excluded)}
    for number, row in enumerate(matrix.include):
        _include(left, row, axes, f"matrix.include[{number}]")
    chosen = tuple(Chosen(names, overrides) for names, overrides in left.items())
    _check_chosen([one.names for one in chosen])
    return chosen


def _axis(values: Sequence[str | MatrixValue], field: str, *, engines: bool = False) -> _Axis:
    """Returns the values of an axis by name; an engine's name is that of its options, too."""
    found: dict[str, Overrides] = {}
    for value in values[:MANY]:
        name = value if isinstance(value, str) else value.name
        check_name(name, field)
        if name in found:
            raise InvalidSetting(field, f"{field} lists {name} twice", name)
        own = Overrides() if isinstance(value, str) else value
        first = Overrides(options={"name": name} if engines else {})
        found[name] = first.with_more(own)
    return found


def _product(axes: Sequence[_Axis]) -> Iterator[tuple[Names, Overrides]]:
    count = 1
    for axis in axes:
        count *= max(len(axis), 1)
    if count > MAX_COMBINATIONS * MANY:
        raise InvalidInput("matrix", f"at most {MAX_COMBINATIONS} combinations", count)
    for values in itertools.product(*(axis or ("",) for axis in axes)):
        names = Names(*values)
        yield names, _overrides_of(names, axes)


def _overrides_of(names: Names, axes: Sequence[_Axis]) -> Overrides:
    together = Overrides()
    for name, axis in zip(names, axes, strict=True):
        if name:
            together = together.with_more(axis[name])
    return together


def _excluded(row: ExcludedRow, axes: Sequence[_Axis]) -> Names:
    names = Names(row.target, row.sanitizer, row.engine)
    if not any(names):
        raise InvalidSetting("matrix.exclude", "matrix.exclude has a row without values")
    _check_known(names, axes, "matrix.exclude")
    return names


def _include(
    left: dict[Names, Overrides], row: IncludedRow, axes: Sequence[_Axis], field: str
) -> None:
    """Adds a row's combination, or changes the one that has its values."""
    names = Names(row.target, row.sanitizer, row.engine)
    _check_known(names, axes, field)
    for axis, name, values in zip(_AXES, names, axes, strict=True):
        if values and not name:
            message = f"{field} has no {axis} (known: {', '.join(values)})"
            raise InvalidSetting(field, message)
    before = left.get(names, _overrides_of(names, axes))
    after = before.with_more(row)
    if names in left and after == before:
        raise InvalidSetting(field, f"{field} repeats the combination {names.joined}")
    left[names] = after


def _check_known(names: Names, axes: Sequence[_Axis], field: str) -> None:
    for axis, name, values in zip(_AXES, names, axes, strict=True):
        if name and name not in values:
            listed = f" (known: {', '.join(values)})" if values else f": the matrix has no {axis}s"
            message = f"{field}: unknown {axis} {name}{listed}{did_you_mean(name, values)}"
            raise InvalidSetting(field, message, name)


def _matches(names: Names, rows: Iterable[Names]) -> bool:
    return any(
        all(not wanted or wanted == name for wanted, name in zip(row, names, strict=True))
        for row in rows
    )


def _check_chosen(chosen: Sequence[Names]) -> None:
    if not chosen:
        raise InvalidSetting("matrix", "matrix.exclude leaves no combination")
    if len(chosen) > MAX_COMBINATIONS:
        raise InvalidInput("matrix", f"at most {MAX_COMBINATIONS} combinations", len(chosen))
    seen: set[str] = set()
    for names in chosen:
        if len(names.joined) > MAX_NAME:
            message = f"the name of combination {names.joined} is longer than {MAX_NAME} characters"
            raise InvalidSetting("matrix", message, names.joined)
        if names.joined in seen:
            message = f"two combinations have the name {names.joined}; rename one of the values"
            raise InvalidSetting("matrix", message, names.joined)
        seen.add(names.joined)
