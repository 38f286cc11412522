"""`run_if`: whether a job runs, decided when its dependencies have ended.

`success()`, `failure()` and `always()` are about all of them, `success('test')` about those of one
name; `state('test')` is how a job ended, `output('plan', 'version')` a part of its result. A
condition that uses neither the first three nor `state` also requires `success()`.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from windlass.domain.job.conditions import Meaning, Refuse, Token, evaluate, split
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.domain.tasks.references import output_of
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import counted

OUTCOMES: Final = ("success", "failure", "always", "state")
FUNCTIONS: Final = (*OUTCOMES, "output")
_NAMES: Final = {"success": None, "failure": None, "always": 0, "state": 1, "output": 2}
ANY_OF: Final = "[*]"


class Ended(NamedTuple):
    """A dependency that has ended: its state, and its result if it completed."""

    id: int
    name: str | None
    state: State
    allowed: bool  # allowed to fail
    result: Any = None

    @property
    def succeeded(self) -> bool:
        return self.state is State.COMPLETED or (self.allowed and self.state is not State.SKIPPED)

    @property
    def failed(self) -> bool:
        return not self.succeeded and self.state is not State.SKIPPED


def waits_for_ends(spec: JobSpec, field: str) -> JobSpec:
    """Returns the job with dependencies that accept any end; checks its condition."""
    where = f"{field}.run_if"
    if spec.unblock == "manual":
        raise InvalidInput(where, "without unblock: manual, which decides too", spec.run_if)
    if not spec.after and not spec.after_any:
        raise InvalidInput(where, "beside jobs in after or after_any", spec.run_if)
    waited = tuple(dict.fromkeys((*spec.after, *spec.after_any)))
    names = [name for name in waited if isinstance(name, str)]
    check(spec.run_if or "", where, names if len(names) == len(waited) else None)
    return replace(spec, after=(), after_any=waited)


def check(text: object, field: str, waited: Sequence[str] | None) -> None:
    """Raises `InvalidInput` for an invalid condition, or one about a job that is not a dependency.

    Without `waited`, names are not checked: some dependencies have no name here.
    """
    if not isinstance(text, str):
        raise InvalidInput(field, "a condition", text)

    def named(function: str, names: Sequence[str]) -> Any:
        check_call(function, names, refuse)
        for name in names[:1] if function == "output" else names:
            if waited is not None and not any(means(name, 0, other) for other in waited):
                hint = did_you_mean(name, waited)
                raise InvalidInput(field, "the name of a job that it waits for", name, hint)
        return ""

    refuse = _refusal(field)
    evaluate(split(text, refuse), Meaning(_no_name(refuse), named, refuse))


def check_call(function: str, names: Sequence[str], refuse: Refuse) -> None:
    """Refuses unknown functions and wrong numbers of names."""
    if function not in _NAMES:
        known = [f"{name}()" for name in FUNCTIONS]
        called = f"{function}()"
        raise refuse(f"one of {', '.join(known)}", called, did_you_mean(called, known))
    wanted = _NAMES[function]
    if wanted is not None and len(names) != wanted:
        raise refuse(f"{function}() with {counted(wanted, 'quoted name')}", len(names))


def holds(text: str, ended: Sequence[Ended]) -> bool:
    """Returns whether a checked condition is true, now that these jobs have ended."""

    def value(function: str, names: Sequence[str]) -> Any:
        if function in ("success", "failure"):
            chosen = [job for job in ended if not names or _is_one_of(job, names)]
            if function == "success":
                return all(job.succeeded for job in chosen)
            return any(job.failed for job in chosen)
        if function == "always":
            return True
        job = next((job for job in ended if _is_one_of(job, names[:1])), None)
        if job is None:
            return ""
        return str(job.state) if function == "state" else output_of(job.result, names[1])

    refuse = _refusal("run_if")
    tokens = split(text, refuse)
    true = evaluate(tokens, Meaning(_no_name(refuse), value, refuse))
    return true and (mentions(tokens, OUTCOMES) or all(job.succeeded for job in ended))


def mentions(tokens: Sequence[Token], functions: Sequence[str]) -> bool:
    """Returns whether the condition calls one of these functions."""
    return any(
        token.kind == "name" and token.word in functions and after == Token("sign", "(")
        for token, after in pairwise(tokens)
    )


def means(name: str, job: int, other: str | None) -> bool:
    """Returns whether a name in a condition means this job, itself or as one of a group."""
    base = name.removesuffix(ANY_OF)
    if other is None:
        return base == str(job)
    return other == base or other.startswith((f"{base}[", f"{base}/"))


def _is_one_of(job: Ended, names: Sequence[str]) -> bool:
    return any(means(name, job.id, job.name) for name in names)


def _refusal(field: str) -> Refuse:
    return partial(InvalidInput, field)


def _no_name(refuse: Refuse) -> Callable[[str], Any]:
    def find(word: str) -> Any:
        known = [f"{name}()" for name in FUNCTIONS]
        raise refuse(f"one of {', '.join(known)}", word, did_you_mean(word, known))

    return find
