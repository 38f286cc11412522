"""Finds where functions begin and end in C and C++ sources, by counting brackets.

It needs no compiler: the commit may need one that is not installed here, and the map only
needs names and lines. Macros that open brackets are not understood.
"""

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_NOISE: Final = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)\"|\"(?:\\.|[^\"\\\n])*\""
    r"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_NAME: Final = re.compile(
    r"(?<!\w)((?:[A-Za-z_]\w*(?:<[^()]*>)?\s*::\s*)*"
    r"(?:operator\s*(?:\(\)|[^\s\w(]+|\w+)|~?[A-Za-z_]\w*))\s*$"
)
_CLASS: Final = re.compile(r"\b(?:class|struct|union)\s+(?:[A-Z_]+\s+)?([A-Za-z_]\w*)")
_SPECIAL: Final = re.compile(r"\b(?:__attribute__|alignas|decltype|noexcept|requires)\s*$")
HEAD_LENGTH: Final = 2_000  # characters before a bracket that decide what it opens
_LABELS: Final = frozenset({"public", "protected", "private"})
_KEYWORDS: Final = frozenset({"if", "for", "while", "switch", "catch", "return", "sizeof"})


class Span(NamedTuple):
    """A function's name as written, qualified by its classes, and its lines."""

    name: str
    first: int
    last: int


@dataclass(slots=True)
class _Scope:
    kind: str  # outer, class, function, inner, value
    name: str = ""
    first: int = 0


@dataclass(slots=True)
class _Reader:
    scopes: list[_Scope] = field(default_factory=list)
    head: str = ""
    head_line: int = 1
    found: list[Span] = field(default_factory=list)
    functions: int = 0  # open scopes

    def open(self) -> None:
        """Handles `{`: the text before it decides what kind of scope opens."""
        scope = _Scope("inner") if self.functions else _scope(self.head, self.head_line)
        if scope.kind == "function":
            self.functions += 1
            classes = [s.name for s in self.scopes if s.kind == "class"]
            scope.name = "::".join([*classes, scope.name])
        self.scopes.append(scope)
        if scope.kind != "value":
            self.head = ""

    def close(self, line: int) -> None:
        """Handles `}`."""
        scope = self.scopes.pop() if self.scopes else _Scope("inner")
        if scope.kind == "function":
            self.functions -= 1
            self.found.append(Span(scope.name, scope.first, line))
        if scope.kind != "value":
            self.head = ""

    def read(self, char: str, line: int) -> None:
        """Handles any other character; `;` and labels such as `public:` reset the text."""
        if char == ";" or (char == ":" and self.head.strip() in _LABELS):
            self.head = ""
            return
        if not self.head.strip():
            self.head_line = line
        self.head = (self.head + char)[-HEAD_LENGTH:]


def functions_in(source: str) -> list[Span]:
    """Returns all functions that a source defines, in the order in which they end."""
    reader = _Reader()
    line = 1
    for char in _NOISE.sub(_blank, source):
        if char == "{":
            reader.open()
        elif char == "}":
            reader.close(line)
        else:
            reader.read(char, line)
        line += char == "\n"
    return reader.found


def _blank(noise: re.Match[str]) -> str:
    """Keeps only the line breaks, so that line numbers stay correct."""
    return " " + "\n" * noise[0].count("\n")


def _scope(head: str, line: int) -> _Scope:
    text = head.strip()
    if "(" not in text or text.endswith("="):
        if found := _CLASS.search(text):
            return _Scope("class", found[1])
        return _Scope("outer" if _is_outer(text) else "inner")
    if _is_initialiser(text):
        return _Scope("value")
    name = _name_of(text)
    return _Scope("function", name, line) if name else _Scope("inner")


def _is_outer(text: str) -> bool:
    return "namespace" in text.split() or text.startswith("extern")


def _is_initialiser(text: str) -> bool:
    """Recognises `Parser(int n) : size` before `{n}`: the body is still to come."""
    after = text.rpartition(")")[2] if text.count("(") == text.count(")") else text
    members = re.search(r"\)\s*(?:noexcept\s*)?:(?!:)", text)
    return members is not None and bool(re.search(r"[,:]\s*[A-Za-z_]\w*$", after or text))


def _name_of(text: str) -> str:
    for place, char in enumerate(text):
        if char != "(":
            continue
        before = text[:place]
        if _SPECIAL.search(before):
            continue
        if text[place:].startswith("()") and before.rstrip().endswith("operator"):
            before += "()"
        found = _NAME.search(before)
        if found is None:
            return ""
        name = re.sub(r"\s+", "", found[1]) if "operator" not in found[1] else found[1]
        return "" if name in _KEYWORDS else name
    return ""
