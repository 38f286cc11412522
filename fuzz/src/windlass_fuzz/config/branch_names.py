"""The branches of a solver: names, and patterns in which `*` stands for a part of a name."""

import re
from collections.abc import Sequence
from typing import Final

from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.errors import InvalidSetting

# What git forbids in branch names, besides `*`, which makes a pattern here.
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f~^:?\[\\]|\.\.|@\{|//|/\.|\.lock(/|$)|[/.]$|^[-/.]")
_STARS: Final = re.compile(r"\*\*|\*")
_SPECIAL: Final = re.compile(r"[+!]")  # has a meaning in GitHub's patterns, but not in ours


def is_pattern(name: str) -> bool:
    """Returns whether this stands for several branches."""
    return "*" in name


def matches(pattern: str, name: str) -> bool:
    """Returns whether a branch fits: `*` stands for any text without `/`, `**` for any text."""
    return _expression(pattern).fullmatch(name) is not None


def _expression(pattern: str) -> re.Pattern[str]:
    parts = _STARS.split(pattern)
    stars = [".*" if found == "**" else "[^/]*" for found in _STARS.findall(pattern)]
    pairs = zip(parts, [*stars, ""], strict=True)
    return re.compile("".join(re.escape(part) + star for part, star in pairs))


def check_branch(field: str, name: str) -> None:
    """Refuses what git would not accept as the name of a branch; `*` is allowed."""
    if not name or _FORBIDDEN.search(name):
        raise InvalidInput(field, "the name of a branch", name)


def check_branches(names: Sequence[str]) -> None:
    """Checks a list of names and patterns."""
    for name in names:
        check_branch("branches", name)
    if names and is_pattern(names[0]):
        raise InvalidSetting(
            "branches",
            f"the first of branches must be a name such as main, not the pattern {names[0]}: it "
            "is the branch that must always exist",
            names[0],
        )
    for name in names:
        if list(names).count(name) > 1:
            raise InvalidSetting("branches", f"branches lists {name} twice", name)


def for_github(name: str) -> str:
    """Returns a name or pattern as a branch filter of GitHub Actions."""
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", name)
