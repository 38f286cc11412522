"""The title of a wrong answer about a formula: which solver says what, and the formula's operators.

A wrong answer has no stack. Two fully minimised inputs that use the same operators count as one
bug; see decision 032.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

Term = str | list["Term"]

# They connect the terms of every formula, and say nothing about a bug unless there are no other
# operators.
CONNECTING: Final = frozenset(
    ("and", "or", "not", "=>", "xor", "=", "distinct", "ite", "<", "<=", ">", ">=")
)
BINDERS: Final = frozenset(("forall", "exists", "lambda"))
DECLARING: Final = frozenset(
    ("declare-fun", "declare-const", "define-fun", "define-fun-rec", "define-const")
)
_TOKEN: Final = re.compile(r';[^\n]*|"(?:[^"]|"")*"|\|[^|]*\||[()]|[^\s()";|]+')
# Other symbols are not operators of a theory, and might break the lines of a title.
_PLAIN: Final = re.compile(r"[A-Za-z0-9~!@$%^&*_+=<>.?/-]{1,60}\Z")
_NUMBER: Final = re.compile(r"\d[\d.]*\Z")
_LITERAL: Final = re.compile(r"bv\d+\Z")


def answers_differ(answers: Mapping[str, Sequence[str]]) -> str:
    """Returns who answers what, for the first question with different answers; "" if all agree.

    Of three or more solvers, those in the minority are named: they are probably wrong.
    """
    for row in zip(*answers.values(), strict=False):
        said = dict(zip(answers, row, strict=True))
        votes = Counter(answer for answer in said.values() if answer != "unknown")
        if len(votes) < 2:
            continue
        (most, count), (_, second) = votes.most_common(2)
        if count > second and count > 1:
            odd = [f"{name} says {what}" for name, what in said.items()
                   if what not in (most, "unknown")]  # fmt: skip
            return f"wrong answer: {', '.join(odd)}, {count} others say {most}"
        sides = [f"{name} says {what}" for name, what in said.items() if what != "unknown"]
        return f"answers differ: {', '.join(sides)}"
    return ""


def operators_of(text: str) -> tuple[str, ...]:
    """Returns the operators of a script's formulas and its logic, in order of their names.

    Connectives count only if there is no other operator. Names that the script declares or binds
    do not count.
    """
    commands = [one for one in _parsed(text) if isinstance(one, list) and _command(one)]
    declared = set(_declared(commands))
    found = {name for one in commands for name in _used(one)} - declared
    operators = found - CONNECTING or found
    logics = [str(one[1]) for one in commands if one[0] == "set-logic" and len(one) > 1]
    return (*filter(_PLAIN.match, logics[:1]), *sorted(operators))


def _command(term: list[Term]) -> str:
    """Returns the name of a command, "" if the term is not a command."""
    return term[0] if term and isinstance(term[0], str) else ""


def _parsed(text: str) -> list[Term]:
    """Returns the terms of a script; tolerates unbalanced brackets."""
    top: list[Term] = []
    stack = [top]
    for word in _TOKEN.findall(text):
        if word == "(":
            inner: list[Term] = []
            stack[-1].append(inner)
            stack.append(inner)
        elif word == ")":
            if len(stack) > 1:
                stack.pop()
        elif not word.startswith(";"):
            stack[-1].append(word)
    return top


def _declared(commands: Iterable[list[Term]]) -> Iterator[str]:
    for command in commands:
        if command[0] in DECLARING:
            yield from (name for name in command[1:2] if isinstance(name, str))
        elif command[0] in ("declare-datatype", "declare-datatypes"):
            yield from _symbols(command)


def _symbols(term: list[Term]) -> Iterator[str]:
    waiting: list[Term] = [term]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        else:
            waiting += one


def _used(command: list[Term]) -> Iterator[str]:
    """Yields the operators of one command."""
    if command[0] in ("assert", "check-sat-assuming"):
        waiting = command[1:]
    elif command[0] in DECLARING and str(command[0]).startswith("define"):
        waiting = command[-1:]
    else:
        return
    while waiting:
        term = waiting.pop()
        if isinstance(term, list) and term:
            name, inner = _split(term)
            waiting += inner
            if _PLAIN.match(name) and not _LITERAL.match(name):
                yield name


def _split(term: list[Term]) -> tuple[str, list[Term]]:
    """Returns the operator of a term, "" if it has none, and the terms that it contains."""
    head, rest = term[0], term[1:]
    if not isinstance(head, str):
        return "", term
    if head in ("_", "as"):
        return (rest[0] if rest and isinstance(rest[0], str) else ""), []
    if head == "!":
        return "", rest[:1]
    if head == "let":
        bindings = rest[0] if rest and isinstance(rest[0], list) else []
        return "", [*(one[-1] for one in bindings if isinstance(one, list) and one), *rest[1:]]
    if head in BINDERS:
        return head, rest[1:]
    if head == "-" and len(rest) == 1 and isinstance(rest[0], str) and _NUMBER.match(rest[0]):
        return "", []
    return head, rest
