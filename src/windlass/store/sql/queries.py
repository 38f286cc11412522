"""Loads named SQL statements from files, so that Python code contains no SQL.

A file has blocks: a line `-- name: insert_jobs`, comment lines with the reason, then the statement.
Comments are not sent to the database and white space is collapsed, since statement caches compare
the text.

Names of codes, such as `{state.queued}`, become numbers. These come from the enumerations of
`domain/`, so SQL and Python cannot disagree. They are filled in when a file is loaded: the database
sees plain constants and plans accordingly.

Numbered steps bring an older database up to date. `schema.sql` is version 1. A change of the schema
after a release is made in `schema.sql` and in a new file `migrations/0002_what_changes.sql`; the
number of the last file is the version.
"""

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from importlib.resources import files
from itertools import pairwise
from types import MappingProxyType
from typing import Final, NamedTuple

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

_CODE: Final = re.compile(r"\{([a-z_]+\.[a-z_]+)\}")
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
ROLES = "windlass.store.sql"
_FILE = re.compile(r"^[a-z_]+(?:\.([a-z]+))?\.sql$")
_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)$")
FIRST_VERSION: Final = 1
SHARING: Final = 200  # jobs whose transition is one row of `events` on PostgreSQL
_STEP_FILE: Final = re.compile(r"^(\d{4})_([a-z0-9_]+)\.sql$")


def fill_in(text: str, filename: str) -> str:
    """Replaces every `{group.name}` with its number; an unknown name is an error."""

    def number(match: re.Match[str]) -> str:
        try:
            return CODES[match[1]]
        except KeyError:
            raise ValueError(f"{filename}: unknown code {match[0]}") from None

    return _CODE.sub(number, text)


def _codes() -> Iterator[tuple[str, int | str]]:
    for group, members in _NUMBERED.items():
        for member in members:
            yield f"{group}.{member.name.lower()}", int(member)
    yield "state.new", NEW_CODE  # the source of the event of a submit
    for state in State:
        yield f"state.{state.name.lower()}", state.code
        yield f"transitions.from_{state.name.lower()}", _mask(state.code)
    yield "transitions.from_new", _mask(NEW_CODE)
    # Both codes of each allowed transition in one number: from × 16 + to.
    packed = sorted(before * 16 + after for before, after in TRANSITION_CODES)
    yield "transitions.packed", ", ".join(map(str, packed))
    yield "transitions.usual", ", ".join(str(before * 16 + after) for before, after in _usual())
    yield "events.jobs_in_row", SHARING
    yield "events.in_row", 2 * SHARING
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


def _usual() -> list[tuple[int, int]]:
    """Returns transitions at times that the rows of a job know; the last one is two in a row."""
    states = (State.QUEUED, State.ASSIGNED, State.RUNNING, State.COMPLETED)
    codes = [NEW_CODE, *(state.code for state in states)]
    return [*pairwise(codes), (State.QUEUED.code, State.RUNNING.code)]


def _literal(text: str) -> str:
    """Returns a text as an SQL literal, for a function whose body is between $$."""
    if "$$" in text:
        raise ValueError("$$ would end the body of the function")
    return "'" + text.replace("'", "''") + "'"


def _mask(before: int) -> int:
    """Returns a number with a bit for each state that `before` may become."""
    return sum(1 << after for source, after in TRANSITION_CODES if source == before)


CODES: Final[Mapping[str, str]] = MappingProxyType({name: str(code) for name, code in _codes()})


def load_queries(dialect: str) -> Mapping[str, str]:
    """Returns the statements for one database, by name: those of the roles and its own.

    `schema.sql` holds no named statements.
    """
    queries: dict[str, str] = {}
    for package in (ROLES, f"windlass.store.{dialect}"):
        for filename in sorted(entry.name for entry in files(package).iterdir()):
            if not _is_for(dialect, filename):
                continue
            found = parse_queries(read_sql(package, filename), filename)
            if twice := queries.keys() & found.keys():
                raise ValueError(f"{filename}: expected new names, got {sorted(twice)} again")
            queries |= found
    return MappingProxyType(queries)


def _is_for(dialect: str, filename: str) -> bool:
    """Returns whether `pools.sql` is for all databases, or `pools.sqlite.sql` for this one."""
    found = _FILE.match(filename)
    return found is not None and filename != "schema.sql" and found[1] in (None, dialect)


def read_sql(package: str, filename: str) -> str:
    """Returns the text of a file in `package`, with numbers in place of the names of codes."""
    return fill_in(files(package).joinpath(filename).read_text(encoding="utf-8"), filename)


def parse_queries(text: str, filename: str) -> Mapping[str, str]:
    """Splits the text of a query file; every block needs a name, a reason and a statement."""
    queries: dict[str, str] = {}
    for name, lines in _blocks(text, filename):
        comments = [line for line in lines if line.startswith("--")]
        statement = " ".join(" ".join(line.split()) for line in lines if not line.startswith("--"))
        if name in queries:
            raise ValueError(f"{filename}: expected each name once, got {name!r} twice")
        if not comments:
            raise ValueError(f"{filename}: expected a comment that says why below {name!r}")
        if not statement.strip():
            raise ValueError(f"{filename}: expected a statement below {name!r}")
        queries[name] = statement.strip().removesuffix(";")
    return MappingProxyType(queries)


def _blocks(text: str, filename: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each name with the lines below it; comments before the first are the file's own."""
    name = ""
    lines: list[str] = []
    for line in (raw.strip() for raw in text.splitlines()):
        if match := _NAME.match(line):
            if name:
                yield name, lines
            name, lines = match.group(1), []
        elif name and line:
            lines.append(line)
        elif line and not line.startswith("--"):
            raise ValueError(f"{filename}: expected `-- name: …` before the statement {line!r}")
    if name:
        yield name, lines


class Step(NamedTuple):
    """Brings a database from the version before to `version`."""

    version: int
    name: str
    sql: str


def load_steps(package: str) -> tuple[Step, ...]:
    """Returns the steps in `package`, in order; they are numbered from 2 without a gap."""
    names = sorted(entry.name for entry in files(package).iterdir())
    steps = tuple(
        Step(int(match[1]), match[2], read_sql(package, name))
        for name in names
        if (match := _STEP_FILE.match(name))
    )
    if [step.version for step in steps] != list(range(FIRST_VERSION + 1, latest(steps) + 1)):
        raise ValueError(f"expected migrations numbered from 2 without a gap, got {names}")
    return steps


def latest(steps: tuple[Step, ...]) -> int:
    """Returns the version that a database has after all steps."""
    return FIRST_VERSION + len(steps)
