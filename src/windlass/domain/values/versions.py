"""Versions of tools and conditions on them: `>=5,<7`, `6.*`, `!=6.1`."""

import re
from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Final

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
