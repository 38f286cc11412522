"""The types of options and filters of clients, for type checkers and editors.

Nothing of this is loaded when a program runs. `tests/client/test_option_types.py` keeps it equal
to what clients take.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from windlass.domain.values.quantities import DurationLike

Texts = str | Sequence[str]
Reactions = Sequence[Mapping[str, Any]]


class WorkflowOptions(TypedDict, total=False):
    """Options of a new workflow: those of `client.workflow("name", ...)`."""

    priority: int | str | None
    key: str | None
    key_for: DurationLike | None
    namespace: str | None
    fail_fast: bool
    labels: Mapping[str, str]
    parameters: Mapping[str, Any]
    on_success: Reactions
    on_failure: Reactions
    on_end: Reactions
    outputs: Mapping[str, Any]


class JobFilters(TypedDict, total=False):
    """Filters of `client.jobs(...)`."""

    id: int | Sequence[int]
    state: Texts
    queue: str | None
    namespace: str | None
    task: str | None
    name: str | None
    label: Texts
    workflow: int | None
    submitted_by: str | None
    dead: bool
    failure: Texts
    text: str | None
    regex: str | None
    created_from: str | datetime | None
    created_to: str | datetime | None
    finished_from: str | datetime | None
    finished_to: str | datetime | None
    key: str | None
    sort: str | None


class WorkflowFilters(TypedDict, total=False):
    """Filters of `client.workflows(...)`."""

    state: Texts
    name: str | None
    namespace: str | None
    label: Texts
    key: str | None
    text: str | None


class EventFilters(TypedDict, total=False):
    """Filters of `client.events(...)`."""

    after: int
    since: str | datetime | timedelta
    kind: Texts
    state: Texts
    job: int | None
    worker: int | str | None
