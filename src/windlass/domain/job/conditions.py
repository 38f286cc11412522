"""Conditions as users write them: comparisons of names, numbers and text.

`==`, `!=`, `<`, `<=`, `>`, `>=`, `and`, `or`, `not` (also `&&`, `||`, `!`), parentheses, names,
calls such as `failure('test')`, numbers, `true`, `false` and quoted text are the whole language.
The caller decides what names and calls stand for.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

LENGTH_LIMIT: Final = 1_000
DEPTH_LIMIT: Final = 20
MAX_NAMES: Final = 100  # names in one call
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*'|\"[^\"]*\")|(?P<number>-?\d{1,15}(?:\.\d{1,15})?(?![\w.]))"
    r"|(?P<name>[A-Za-z_][\w.-]*)|(?P<sign>==|!=|<=|>=|&&|\|\||[<>!(),]))"
)
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_WORDS: Final = {"and": "&&", "or": "||", "not": "!"}
_BEFORE_GROUP: Final = frozenset({*_COMPARE, "&&", "||", "!", "(", ","})
_EXAMPLE: Final = "a condition such as parameters.os == 'linux' and not matrix.debug"


class Token(NamedTuple):
    """One word of a condition: a text, a number, a name or an operator."""

    kind: str
    word: str


class Refuse(Protocol):
    """Makes the error for a condition that cannot be read."""

    def __call__(self, expected: str, got: object, hint: str = "") -> Exception: ...


class Meaning(NamedTuple):
    """What the words of a condition stand for, and how an unreadable one is refused."""

    name: Callable[[str], Any]
    call: Callable[[str, Sequence[str]], Any]
    refuse: Refuse


def split(text: str, refuse: Refuse) -> list[Token]:
    """Returns the words of a condition."""
    if len(text) > LENGTH_LIMIT:
        raise refuse(f"at most {LENGTH_LIMIT} characters", len(text))
    found: list[Token] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise refuse(_EXAMPLE, text[at:])
        kind, word = match.lastgroup, match[match.lastgroup]
        found.append(Token("sign", _WORDS[word]) if word in _WORDS else Token(kind, word))
        at = match.end()
    return found


def evaluate(tokens: Sequence[Token], meaning: Meaning) -> bool:
    """Returns whether a condition is true."""
    return _Reader(tokens, meaning).read()


def joined(words: Sequence[str]) -> str:
    """Returns the words of a condition as one text, spaced for people."""
    text, last = "", ""
    for word in words:
        is_call = word == "(" and last not in _BEFORE_GROUP
        close = not text or last in ("(", "!") or word in (")", ",") or is_call
        text += word if close else f" {word}"
        last = word
    return text


def quote(text: str) -> str:
    """Quotes a text for a condition."""
    return "'" + text.replace("'", "''") + "'"


def text_of(word: str) -> str:
    """Returns the text inside the quotes."""
    return word[1:-1].replace("''", "'") if word[0] == "'" else word[1:-1]


class _Reader:
    """Reads one condition from left to right; evaluates both sides of `and` and `or`."""

    def __init__(self, tokens: Sequence[Token], meaning: Meaning) -> None:
        self._tokens = tokens
        self._meaning = meaning
        self._depth = 0
        self._next = 0

    def read(self) -> bool:
        """Returns the value of the whole condition."""
        value = self._any()
        if self._peek() is not None:
            raise self._meaning.refuse(f"over after {self._done()}", self._peek())
        return truth(value)

    def _any(self) -> Any:
        value = self._all()
        while self._take("||"):
            other = self._all()
            value = truth(value) or truth(other)
        return value

    def _all(self) -> Any:
        value = self._negated()
        while self._take("&&"):
            other = self._negated()
            value = truth(value) and truth(other)
        return value

    def _negated(self) -> Any:
        negations = 0
        while self._take("!"):
            negations += 1
        value = self._compared()
        return value if not negations else truth(value) == (negations % 2 == 0)

    def _compared(self) -> Any:
        left = self._value()
        sign = self._peek()
        if sign is None or sign not in _COMPARE or self._tokens[self._next].kind != "sign":
            return left
        self._next += 1
        right = self._value()
        left, right = _alike(left, right)
        try:
            return _COMPARE[sign](left, right)
        except TypeError:
            got = f"{left} {sign} {right}"
            raise self._meaning.refuse(f"values that {sign} can compare", got) from None

    def _value(self) -> Any:
        if self._next >= len(self._tokens):
            raise self._meaning.refuse("a value at its end", "nothing")
        kind, word = self._tokens[self._next]
        self._next += 1
        if kind == "text":
            return text_of(word)
        if kind == "number":
            return float(word) if "." in word else int(word)
        if kind == "name":
            return self._name(word)
        if word == "(":
            return self._inside()
        raise self._meaning.refuse("a value", word)

    def _name(self, word: str) -> Any:
        words = {"true": True, "false": False}
        if word in words:
            return words[word]
        return self._call(word) if self._take("(") else self._meaning.name(word)

    def _call(self, function: str) -> Any:
        """Returns the value of a call whose parenthesis was read."""
        given: list[str] = []
        while not self._take(")"):
            if given and not self._take(","):
                raise self._meaning.refuse("with ) for each (", self._peek() or "its end")
            if self._next >= len(self._tokens) or self._tokens[self._next].kind != "text":
                got = self._peek() or "its end"
                raise self._meaning.refuse(f"quoted names in {function}()", got)
            given.append(text_of(self._tokens[self._next].word))
            self._next += 1
            if len(given) > MAX_NAMES:
                raise self._meaning.refuse(f"at most {MAX_NAMES} names in {function}()", "more")
        return self._meaning.call(function, given)

    def _inside(self) -> Any:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise self._meaning.refuse(f"nested at most {DEPTH_LIMIT} deep", "deeper")
        value = self._any()
        self._depth -= 1
        if not self._take(")"):
            raise self._meaning.refuse("with ) for each (", self._peek() or "its end")
        return value

    def _peek(self) -> str | None:
        return self._tokens[self._next].word if self._next < len(self._tokens) else None

    def _take(self, sign: str) -> bool:
        found = self._next < len(self._tokens) and self._tokens[self._next] == ("sign", sign)
        self._next += found
        return found

    def _done(self) -> str:
        return joined([token.word for token in self._tokens[: self._next]])


def truth(value: Any) -> bool:
    """Returns False for false, 0, nothing, and the texts "", "0" and "false"; else True."""
    return value.lower() not in ("", "0", "false") if isinstance(value, str) else bool(value)


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Compares as text if one side is text, as parameters from the command line are."""
    if isinstance(left, list) or isinstance(right, list):
        return left, right
    if isinstance(left, str) != isinstance(right, str):
        return _text(left), _text(right)
    return left, right


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
