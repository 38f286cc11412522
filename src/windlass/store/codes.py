"""Names for the numbers that stores keep, as `.sql` files write them: `{state.queued}`.

The numbers come from the enumerations of `domain/`, so SQL and Python cannot disagree. They are
filled in when a file is loaded: the database sees plain constants and plans accordingly.
"""

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

import msgspec

from windlass.domain.job.job import ALLOW_FAILURE, KEYWORDS, PREEMPTIBLE
from windlass.domain.job.json_rules import json_rules
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import NEW_CODE, TRANSITION_CODES, State
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.pools.pools import Lifecycle
from windlass.domain.rows.events import BaselineKind, EventKind
from windlass.domain.rows.files import LogState
from windlass.domain.rows.gaps import BEGIN_MS, MARGIN, PER_MS, SHAPE_MARGIN
from windlass.domain.rows.records import KEPT_WHILE_RUNNING, MAX_JOBS, PROTOCOL
from windlass.domain.rows.series import SeriesKind
from windlass.domain.rows.steps import StepKind, StepState
from windlass.domain.schedules import ReactionKind, ReactionState, RunState
from windlass.domain.values.ids import PER_EPOCH
from windlass.domain.values.json_values import MAX_DEPTH

_NAME: Final = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")

_NUMBERED: Final[Mapping[str, type[IntEnum]]] = {
    "baseline": BaselineKind,
    "event": EventKind,
    "log": LogState,
    "pool_worker": Lifecycle,
    "reaction": ReactionState,
    "reaction_kind": ReactionKind,
    "run": RunState,
    "series": SeriesKind,
    "step": StepKind,
    "step_state": StepState,
    "worker": WorkerStatus,
    "workflow": WorkflowState,
}


def fill_in(text: str, filename: str) -> str:
    """Replaces every `{group.name}` with its number; an unknown name is an error."""

    def number(match: re.Match[str]) -> str:
        try:
            return CODES[match[1]]
        except KeyError:
            raise ValueError(f"{filename}: unknown code {match[0]}") from None

    return _NAME.sub(number, text)


def _codes() -> Iterator[tuple[str, int | str]]:
    for group, members in _NUMBERED.items():
        for member in members:
            yield f"{group}.{member.name.lower()}", int(member)
    yield "state.new", NEW_CODE  # what an event comes from when the job is submitted
    for state in State:
        yield f"state.{state.name.lower()}", state.code
        yield f"transitions.from_{state.name.lower()}", _mask(state.code)
    yield "transitions.from_new", _mask(NEW_CODE)
    # Both codes of each allowed transition in one number: from × 16 + to.
    packed = sorted(before * 16 + after for before, after in TRANSITION_CODES)
    yield "transitions.packed", ", ".join(map(str, packed))
    yield "attempt.per_epoch", PER_EPOCH
    yield "gap.begin_ms", BEGIN_MS
    yield "gap.per_ms", PER_MS
    yield "gap.margin", MARGIN
    yield "gap.shape_margin", SHAPE_MARGIN
    yield "failure.none", 0
    for failure in FailureClass:
        yield f"failure.{failure.name.lower()}", failure.code
    yield "flag.allow_failure", ALLOW_FAILURE
    yield "flag.preemptible", PREEMPTIBLE
    yield "job.options", ", ".join(f"'{name}'" for name in sorted(KEYWORDS))
    yield "job.rules", _literal(msgspec.json.encode(json_rules()).decode())
    yield "inbox.protocol", PROTOCOL
    yield "inbox.most", MAX_JOBS
    yield "json.max_depth", MAX_DEPTH
    yield "manual.no", 0
    yield "manual.yes", 1
    yield "manual.kept_while_running", KEPT_WHILE_RUNNING


def _literal(text: str) -> str:
    """Returns a text as SQL writes it, in a function whose body stands between $$."""
    if "$$" in text:
        raise ValueError("$$ would end the body of the function")
    return "'" + text.replace("'", "''") + "'"


def _mask(before: int) -> int:
    """Returns a number with a bit for each state that `before` may become."""
    return sum(1 << after for source, after in TRANSITION_CODES if source == before)


CODES: Final[Mapping[str, str]] = MappingProxyType({name: str(code) for name, code in _codes()})
