"""Puts text of foreign programs and repositories into Markdown, where it must stay text.

Titles, subjects and output come from code that we do not trust. As code they cannot become links,
images, HTML, mentions of people, or the hidden marks by which we find our own issues.
"""

import re
from typing import Final

_HIDDEN: Final = "\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff"
# Controls, and characters that hide or reorder text. Some trackers refuse text with the former.
_UNSEEN: Final = re.compile(f"[\x00-\x1f{_HIDDEN}]+")
_UNSEEN_IN_BLOCK: Final = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}]")
_BACKTICKS: Final = re.compile("`+")
MARK: Final = "<!-- windlass"
DISARMED: Final = "<!- - windlass"


def code(text: str) -> str:
    """Returns text as inline code on one line, also within a table."""
    line = disarm(one_line(text)).replace("|", "¦")
    if not line:
        return ""
    fence = "`" * (_longest_run(line) + 1)
    edge = " " if "`" in (line[0], line[-1]) else ""
    return f"{fence}{edge}{line}{edge}{fence}"


def one_line(text: str) -> str:
    """Returns text without line breaks and invisible characters."""
    return _UNSEEN.sub(" ", text).strip()


def code_block(title: str, text: str) -> list[str]:
    """Returns text under a heading, in a block whose fence is longer than any in the text.

    Invisible characters are escaped.
    """
    if not text:
        return []
    shown = _UNSEEN_IN_BLOCK.sub(_escaped, text.replace("\r\n", "\n").rstrip("\n"))
    fence = "`" * max(3, _longest_run(shown) + 1)
    return [f"## {title}", "", fence, disarm(shown), fence, ""]


def disarm(text: str) -> str:
    """Breaks up anything that looks like one of our marks."""
    return text.replace(MARK, DISARMED)


def _escaped(unseen: re.Match[str]) -> str:
    return unseen[0].encode("unicode_escape").decode()


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def count_of(number: int, thing: str) -> str:
    """Returns "1 test" or "2 tests"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
