"""`if:`: whether a job of a file is made, and whether it runs.

A condition about parameters, the values of the matrix and the index is decided here. One about
other jobs is decided when those have ended; here it becomes the job's `run_if`, with all other
values filled in.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from windlass.domain.job.conditions import (
    Meaning,
    Token,
    evaluate,
    joined,
    quote,
    split,
    text_of,
)
from windlass.domain.job.run_if import FUNCTIONS, check_call, mentions
from windlass.domain.values.names import did_you_mean
from windlass.workflows.checking import listed
from windlass.workflows.nodes import Misdescribed, Node, plain
from windlass.workflows.substitution import Scope

_WRAPPED: Final = re.compile(r"\s*\$\{\{(.*)\}\}\s*", re.DOTALL)
_OF_JOB: Final = re.compile(r"jobs\.(.+)\.(?:state|outputs\.([\w-]+))")
JOBS: Final = "jobs."


class Condition:
    """A condition as it was written, split into words."""

    def __init__(self, node: Node, field: str) -> None:
        self._node = node
        self._field = field
        wrapped = _WRAPPED.fullmatch(node.text)
        fixed = "true" if node.value is True else "false"
        text = fixed if isinstance(node.value, bool) else wrapped[1] if wrapped else node.text
        self._tokens = split(text, self._refuse)

    @property
    def is_about_jobs(self) -> bool:
        """Returns whether it can be decided only when other jobs have ended."""
        names = (token.word for token in self._tokens if token.kind == "name")
        return mentions(self._tokens, FUNCTIONS) or any(n.startswith(JOBS) for n in names)

    def holds(self, scope: Scope) -> bool:
        """Returns whether it is true; raises `Misdescribed` if it cannot be read."""
        return evaluate(self._tokens, self._meaning(scope))

    def for_later(self, scope: Scope, full_name: Callable[[str], str]) -> str:
        """Returns it as `run_if`; `full_name` finds the jobs that it names."""
        evaluate(self._tokens, self._meaning(scope))
        words: list[str] = []
        last = ""  # the function whose arguments follow
        for token, after in zip(self._tokens, [*self._tokens[1:], None], strict=True):
            called = after == Token("sign", "(")
            if token.kind == "name" and token.word not in ("true", "false") and not called:
                words.append(self._value(token.word, scope, full_name))
            elif token.kind == "text" and last:
                name = text_of(token.word)
                words.append(quote(name if last == "output)" else full_name(name)))
                last = "output)" if last == "output" else last
            else:
                words.append(token.word)
            if called:
                last = token.word if token.kind == "name" else ""
            elif token.word == ")":
                last = ""
        return joined(words)

    def _value(self, name: str, scope: Scope, full_name: Callable[[str], str]) -> str:
        """Returns the replacement of a name for later: a call, or its value."""
        job = _OF_JOB.fullmatch(name)
        if job is not None:
            own = quote(full_name(job[1]))
            return f"state({own})" if job[2] is None else f"output({own}, {quote(job[2])})"
        value = self._found(name, scope)
        if isinstance(value, list):
            raise self._refuse("without lists in a condition about other jobs", name)
        if isinstance(value, str):
            return quote(value)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def _found(self, name: str, scope: Scope) -> Any:
        """Returns the value of a name; suggests a function if one may have been meant."""
        calls = [f"{function}()" for function in FUNCTIONS]
        if name not in scope.names and (hint := did_you_mean(f"{name}()", calls)):
            known = f" ({listed(scope.names)})" if scope.names else ""
            raise self._refuse(f"a condition with known names{known}", name, hint)
        return plain(scope.find(name, self._node.place, self._field))

    def _meaning(self, scope: Scope) -> Meaning:
        def name(word: str) -> Any:
            if word.startswith(JOBS):
                if _OF_JOB.fullmatch(word) is None:
                    raise self._refuse("jobs.NAME.state or jobs.NAME.outputs.OUTPUT", word)
                return ""
            return self._found(word, scope)

        def call(function: str, names: Sequence[str]) -> Any:
            check_call(function, names, self._refuse)
            return ""

        return Meaning(name, call, self._refuse)

    def _refuse(self, expected: str, got: object, hint: str = "") -> Misdescribed:
        return Misdescribed(self._node.place, self._field, expected, got, hint)
