"""`if:`: whether a job of a file is made, from parameters, the values of its matrix and its index.

`==`, `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`, `not` (also `&&`, `||`, `!`), parentheses, names,
numbers, `true`, `false` and quoted text are all there is. Nothing else is computed.
"""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from windlass.workflows.expressions.substitution import Scope
from windlass.workflows.nodes import Misdescribed, Node, plain

LENGTH_LIMIT: Final = 1_000
DEPTH_LIMIT: Final = 20
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'[^']*'|\"[^\"]*\")|(?P<number>-?\d{1,15}(?:\.\d{1,15})?(?![\w.]))"
    r"|(?P<name>[A-Za-z_][\w.-]*)|(?P<sign>==|!=|<=|>=|&&|\|\||[<>!()]))"
)
_WRAPPED: Final = re.compile(r"\s*\$\{\{(.*)\}\}\s*", re.DOTALL)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_WORDS: Final = {"and": "&&", "or": "||", "not": "!"}


def holds(node: Node, scope: Scope, field: str) -> bool:
    """Returns whether a condition is true; raises `Misdescribed` for one that cannot be read."""
    if isinstance(node.value, bool):
        return node.value
    text = node.text
    wrapped = _WRAPPED.fullmatch(text)
    return _Reader(wrapped[1] if wrapped else text, node, scope, field).read()


class _Reader:
    """Reads one condition, from left to right; both sides of `and` and `or` are always read."""

    def __init__(self, text: str, node: Node, scope: Scope, field: str) -> None:
        self._node = node
        self._scope = scope
        self._field = field
        self._depth = 0
        self._tokens = self._split(text)
        self._next = 0

    def read(self) -> bool:
        """Returns the value of the whole condition."""
        value = self._any()
        if self._peek() is not None:
            raise self._refuse(f"over after {self._done()}", self._peek())
        return _truth(value)

    def _split(self, text: str) -> list[tuple[str, str]]:
        if len(text) > LENGTH_LIMIT:
            raise self._refuse(f"at most {LENGTH_LIMIT} characters", len(text))
        found: list[tuple[str, str]] = []
        at = 0
        text = text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None or match.lastgroup is None:
                expected = "a condition such as parameters.os == 'linux' and not matrix.debug"
                raise self._refuse(expected, text[at:])
            kind, word = match.lastgroup, match[match.lastgroup]
            found.append(("sign", _WORDS[word]) if word in _WORDS else (kind, word))
            at = match.end()
        return found

    def _any(self) -> Any:
        value = self._all()
        while self._take("||"):
            other = self._all()
            value = _truth(value) or _truth(other)
        return value

    def _all(self) -> Any:
        value = self._negated()
        while self._take("&&"):
            other = self._negated()
            value = _truth(value) and _truth(other)
        return value

    def _negated(self) -> Any:
        negations = 0
        while self._take("!"):
            negations += 1
        value = self._compared()
        return value if not negations else _truth(value) == (negations % 2 == 0)

    def _compared(self) -> Any:
        left = self._value()
        sign = self._peek()
        if sign is None or sign not in _COMPARE or self._tokens[self._next][0] != "sign":
            return left
        self._next += 1
        right = self._value()
        left, right = _alike(left, right)
        try:
            return _COMPARE[sign](left, right)
        except TypeError:
            raise self._refuse(
                f"values that {sign} can compare", f"{left} {sign} {right}"
            ) from None

    def _value(self) -> Any:
        if self._next >= len(self._tokens):
            raise self._refuse("a value at its end", "nothing")
        kind, word = self._tokens[self._next]
        self._next += 1
        if kind == "text":
            return word[1:-1]
        if kind == "number":
            return float(word) if "." in word else int(word)
        if kind == "name":
            words = {"true": True, "false": False}
            if word in words:
                return words[word]
            return plain(self._scope.find(word, self._node.place, self._field))
        if word == "(":
            return self._inside()
        raise self._refuse("a value", word)

    def _inside(self) -> Any:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise self._refuse(f"nested at most {DEPTH_LIMIT} deep", "deeper")
        value = self._any()
        self._depth -= 1
        if not self._take(")"):
            raise self._refuse("with ) for each (", self._peek() or "its end")
        return value

    def _peek(self) -> str | None:
        return self._tokens[self._next][1] if self._next < len(self._tokens) else None

    def _take(self, sign: str) -> bool:
        found = self._next < len(self._tokens) and self._tokens[self._next] == ("sign", sign)
        self._next += found
        return found

    def _done(self) -> str:
        return " ".join(word for _, word in self._tokens[: self._next])

    def _refuse(self, expected: str, got: object) -> Misdescribed:
        return Misdescribed(self._node.place, self._field, expected, got)


def _truth(value: Any) -> bool:
    """Returns False for false, 0, nothing, and the texts "", "0" and "false"."""
    return value.lower() not in ("", "0", "false") if isinstance(value, str) else bool(value)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Compares as text where one side is text: parameters of the command line are."""
    if isinstance(left, list) or isinstance(right, list):
        return left, right
    if isinstance(left, str) != isinstance(right, str):
        return _text(left), _text(right)
    return left, right


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
