"""What a job asks of a worker: conditions on its metadata, and the resources that it takes there.

A clause is a condition as data: `memory>=4GiB`, `ffmpeg:version matches >=5,<7`.

Clauses have one canonical form, so that jobs with equal needs share a shape.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from windlass.domain.access.secrets import KEY_START
from windlass.domain.matching.functions import MISSING, function_needs
from windlass.domain.matching.isolation import OFFERED
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import SIZE_LIMIT, format_size, parse_size, readable_limit

Version = tuple[int, ...]
Condition = Callable[[Version], bool]

EXPECTED: Final = "a version condition such as >=5,<7 or 6.*"

# ffmpeg reports n6.1 and 7.0.2-static, Debian 1:2.3-4; we compare only the dotted numbers.
_VERSION: Final = re.compile(r"(?:[0-9]{1,9}:)?[vVnN]?([0-9]{1,18}(?:\.[0-9]{1,18})*)(?![0-9])")
_CONDITION: Final = re.compile(
    r"(?P<op>==|!=|>=|<=|>|<)?\s*(?P<version>[0-9]{1,18}(?:\.[0-9]{1,18})*)(?P<any>\.\*)?"
)
_COMPARE: Final[Mapping[str, Callable[[Version, Version], bool]]] = {
    "==": eq,
    "!=": ne,
    ">=": ge,
    "<=": le,
    ">": gt,
    "<": lt,
}


def parse_version(text: str) -> Version | None:
    """Returns the dotted numbers at the start of a version; None if there are none."""
    match = _VERSION.match(text.strip())
    return _numbers(match[1]) if match else None


def parse_specifier(text: str) -> tuple[Condition, ...] | None:
    """Returns the conditions of a specifier, which must all hold; None if it is invalid."""
    conditions = []
    for part in text.split(","):
        match = _CONDITION.fullmatch(part.strip())
        op = (match["op"] or "==") if match else ""
        if match is None or (match["any"] and op not in ("==", "!=")):
            return None
        conditions.append(_condition(op, _numbers(match["version"]), bool(match["any"])))
    return tuple(conditions)


def satisfies(version: str, specifier: str) -> bool:
    """Returns True if a version meets a specifier; an unreadable version never does."""
    numbers = parse_version(version)
    conditions = parse_specifier(specifier)
    if numbers is None or conditions is None:
        return False
    return all(condition(numbers) for condition in conditions)


def _condition(op: str, wanted: Version, any_rest: bool) -> Condition:
    compare = _COMPARE[op]

    def holds(version: Version) -> bool:
        if any_rest:
            return compare(_padded(version, len(wanted))[: len(wanted)], wanted)
        width = max(len(version), len(wanted))
        return compare(_padded(version, width), _padded(wanted, width))

    return holds


def _padded(version: Version, width: int) -> Version:
    return version + (0,) * (width - len(version))


def _numbers(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


Scalar = str | int | float

SHORT_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "memory": "system:memory",
        "cpus": "system:cpus",
        "gpus": "system:gpus",
        "os": "system:os",
        "disk": "system:disk",
    }
)
_LONG_NAMES: Final = {key: name for name, key in SHORT_NAMES.items()}

SYMBOLS: Final = ("==", "!=", ">=", "<=", ">", "<")
WORDS: Final = ("in", "has", "matches")
ORDERING: Final = frozenset({">=", "<=", ">", "<"})

_SIZES: Final = frozenset({"memory", "disk"})
_TEXT_LIMIT: Final = 1000
_INT_LIMIT: Final = 2**63
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]*")
_CLAUSE: Final = re.compile(
    rf"(?P<key>{_KEY.pattern})"
    rf"(?:\s*(?P<symbol>{'|'.join(SYMBOLS)})\s*|\s+(?P<word>{'|'.join(WORDS)})\s+)"
    r"(?P<value>\S.*)"
)
_EXPECTED: Final = f"KEY OPERATOR VALUE with one of {' '.join((*SYMBOLS, *WORDS))}"


class Clause(Struct, frozen=True):
    """What a worker's metadata must contain under `key`; made by `parse_clause`."""

    key: str
    op: str
    value: Scalar | tuple[Scalar, ...]

    @property
    def text(self) -> str:
        """Returns the clause as `parse_clause` reads it."""
        gap = " " if self.op in WORDS else ""
        return f"{short_key(self.key)}{gap}{self.op}{gap}{self._value_text()}"

    @property
    def needs(self) -> str:
        """Returns the clause for people: memory ≥ 16 GiB, linux among os."""
        if self.key == OFFERED and self.op == "has":
            return f"isolation {self._value_text()}"
        if self.key == MISSING and self.op == "!=":
            return function_needs(str(self.value))
        if self.key.startswith(KEY_START):
            return f"the secret {self.key.removeprefix(KEY_START)}"
        key, value = short_key(self.key), self._value_text(readable=True)
        if self.op == "has":
            return f"{value} among {key}"
        if self.op == "matches":
            return f"{key} version {value}"
        if self.op == "in":
            return f"{key} = {value.replace(',', ' or ')}"
        sign = {"==": "=", ">=": "≥", "<=": "≤", "!=": "≠"}.get(self.op, self.op)
        return f"{key} {sign} {value}"

    def _value_text(self, readable: bool = False) -> str:
        values = self.value if isinstance(self.value, tuple) else (self.value,)
        return ",".join(_exact_text(self.key, value, readable) for value in values)


def parse_clause(text: str, field: str = "requires") -> Clause:
    """Parses a clause into its canonical form."""
    match = _CLAUSE.fullmatch(text.strip()) if len(text) <= _TEXT_LIMIT else None
    if match is None or not text.isprintable():
        raise InvalidInput(field, _EXPECTED, text)
    return canonical_clause(
        Clause(match["key"], match["symbol"] or match["word"], match["value"]), field
    )


def canonical_clause(clause: Clause, field: str = "requires") -> Clause:
    """Returns the canonical form of a clause: long key, numbers as numbers, sizes in bytes."""
    if not _KEY.fullmatch(clause.key) or clause.op not in (*SYMBOLS, *WORDS):
        raise InvalidInput(field, _EXPECTED, f"{clause.key} {clause.op}")
    key = SHORT_NAMES.get(clause.key, clause.key)
    where = f"{field} {short_key(key)}"
    if clause.op == "in":
        return Clause(key, "in", _items(key, clause.value, where))
    if isinstance(clause.value, tuple):
        raise InvalidInput(where, f"one value for {clause.op}", clause.value)
    if clause.op == "matches":
        return Clause(key, "matches", _specifier(clause.value, where))
    value = _scalar(key, clause.value, where)
    if clause.op in ORDERING and isinstance(value, str):
        value = _number(value, where)
    return Clause(key, clause.op, value if clause.op in ORDERING else _comparable(value))


def canonical_requires(clauses: Iterable[str | Clause]) -> tuple[Clause, ...]:
    """Returns clauses in canonical form, sorted and without duplicates."""
    parsed = (
        parse_clause(clause) if isinstance(clause, str) else canonical_clause(clause)
        for clause in clauses
    )
    by_text = {clause.text: clause for clause in parsed}
    return tuple(by_text[text] for text in sorted(by_text))


def target(arch: str) -> Clause:
    """Returns the clause for a job's platform: `system:architectures has ARCH`."""
    return canonical_clause(Clause("system:architectures", "has", arch), "target")


def mode_clause(mode: str) -> Clause:
    """Returns the clause that only workers with this mode of isolation meet."""
    return Clause(OFFERED, "has", mode)


def function_clause(key: str) -> Clause:
    """Returns the clause that workers meet unless they cannot run this function."""
    return Clause(MISSING, "!=", key)


def short_key(key: str) -> str:
    """Returns a metadata key as people write it."""
    return _LONG_NAMES.get(key, key)


def is_size(key: str) -> bool:
    """Returns True if a key holds bytes."""
    return key.rpartition(":")[2] in _SIZES


def _scalar(key: str, value: Scalar, where: str) -> Scalar:
    if isinstance(value, bool):
        # Python treats True as 1; as text they stay different clauses.
        return "true" if value else "false"
    if is_size(key):
        return parse_size(value, where)
    if isinstance(value, str):
        return _text(value, where)
    if abs(value) >= _INT_LIMIT or math.isnan(value):
        raise InvalidInput(where, "a finite number of at most 64 bits", value)
    return int(value) if value == int(value) else value


def _text(value: str, where: str) -> str | int:
    text = value.strip()
    if not text or not text.isprintable() or len(text) > _TEXT_LIMIT:
        raise InvalidInput(where, f"1 to {_TEXT_LIMIT} printable characters", value)
    if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text) and abs(int(text)) < _INT_LIMIT:
        return int(text)
    return text


def _number(text: str, where: str) -> int | float:
    match = re.fullmatch(r"[+-]?[0-9]{1,19}(\.[0-9]+)?", text)
    number = float(text) if match else math.inf
    if abs(number) >= _INT_LIMIT:
        raise InvalidInput(where, "a number (versions are compared with matches)", text)
    return int(number) if number == int(number) else number


def _comparable(value: Scalar) -> str | int:
    """Returns a value to compare for equality; fractions stay text (3.10 is not 3.1)."""
    return _plain_float(value) if isinstance(value, float) else value


def _items(key: str, value: Scalar | tuple[Scalar, ...], where: str) -> tuple[Scalar, ...]:
    raw: Iterable[Scalar] = value if isinstance(value, tuple) else (value,)
    if isinstance(value, str):
        text = value.strip()
        inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        raw = inner.split(",")
    items = [_comparable(_scalar(key, item, where)) for item in raw]
    if not items or any(isinstance(item, str) and re.search(r"[\[\],]", item) for item in items):
        raise InvalidInput(where, "comma-separated values", value)
    by_text = {str(item): item for item in items}
    return tuple(by_text[text] for text in sorted(by_text))


def _specifier(value: Scalar, where: str) -> str:
    text = "".join(str(value).split())
    if len(text) > _TEXT_LIMIT or parse_specifier(text) is None:
        raise InvalidInput(where, EXPECTED, value)
    return text


def _exact_text(key: str, value: Scalar, readable: bool) -> str:
    if is_size(key) and isinstance(value, int):
        text = readable_limit(value) if readable else format_size(value)
        return text if parse_size(text) == value else str(value)
    return _plain_float(value) if isinstance(value, float) else str(value)


def _plain_float(value: float) -> str:
    return format(Decimal(repr(value)), "f")


CPUS: Final = "cpus"
NO_CPUS: Final = (CPUS, 0)  # a job that says so uses none where jobs share processors
_BUILT_IN: Final = frozenset({"cpus", "memory", "gpus", "disk"})
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def canonical_resources(resources: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """Returns amounts as integers (memory and disk in bytes), sorted, without zeros."""
    amounts = {name: _amount(name, value) for name, value in resources.items()}
    return tuple((name, amounts[name]) for name in sorted(amounts) if amounts[name])


def canonical_needs(resources: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    """Returns a job's needs in the same form, but keeps an explicit 0 of cpus."""
    found = canonical_resources(resources)
    none = CPUS in resources and all(name != CPUS for name, _ in found)
    return tuple(sorted((*found, NO_CPUS))) if none else found


def resource_key(name: str) -> str:
    """Returns the metadata key under which a worker reports how much it has."""
    return SHORT_NAMES[name] if name in _BUILT_IN else f"resource:{name}"


def _amount(name: str, value: object) -> int:
    if not _NAME.fullmatch(name):
        expected = "named with letters, digits, _, . and -, at most 100"
        raise InvalidInput("resources", expected, name)
    where = f"resources.{name}"
    if is_size(name):
        return parse_size(value, where)
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value.strip()):
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= SIZE_LIMIT:
        return value
    raise InvalidInput(where, "a whole number of 0 or more", value)
