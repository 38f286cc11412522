"""Messages about templates and schedules, version 1."""

from typing import Any, Literal

import msgspec

from windlass.domain.job.job import JobSpec


class TemplateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Creates or replaces a template; `body` describes the workflow."""

    body: dict[str, Any]


class TemplatePut(msgspec.Struct, frozen=True, kw_only=True):
    """`applied` is False if the newest version is identical."""

    name: str
    namespace: str
    version: int
    applied: bool


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a template; the secrets of its webhooks are not shown."""

    name: str
    namespace: str
    version: int
    priority: int | str | None
    parameters: dict[str, Any]
    body: dict[str, Any]
    created_at: str
    created_by: str | None


class TemplateList(msgspec.Struct, frozen=True):
    templates: list[Template]


class StartRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`version` 0 is the newest. `priority`, `key` and `key_for` override the template's.

    `submission_key` makes the call idempotent: repeating it returns the first answer.
    """

    parameters: dict[str, Any] = {}
    priority: int | str | None = None
    key: str | None = None
    key_for: float | str | None = None
    version: int = 0
    submission_key: str | None = None


class StartReply(msgspec.Struct, frozen=True, kw_only=True):
    """The workflow; `applied` is False if another one has the same key.

    It was not made after `at` (in ms, 0: unknown).
    """

    workflow: int
    template: str
    ids: list[int]
    applied: bool
    at: int = 0


class ScheduleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Creates or replaces a schedule that starts a template with `parameters`, or `jobs`.

    Its slots come from a `cron` line in a time `zone`, or from an interval `every` ("90m", or a
    number of seconds) that starts at its creation. `overlap` decides about slots that come due
    while a run is still open, `catch_up` about slots missed while no server ran; `catch_up_limit`
    bounds what "all" means.
    """

    cron: str | None = None
    every: float | str | None = None
    zone: str = "UTC"
    overlap: Literal["allow", "skip", "queue", "cancel"] = "skip"
    catch_up: Literal["none", "last", "all"] = "last"
    catch_up_limit: int = 100
    paused: bool = False
    template: str | None = None
    parameters: dict[str, Any] = {}
    jobs: list[JobSpec] = []
    priority: int | str | None = None


class ScheduleRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run; `slot` is None for those started by hand.

    `workflow_state` is the state of its workflow, if it was started and still exists.
    """

    id: int
    slot: str | None
    state: str
    workflow: int | None
    created_at: str
    changed_at: str
    reason: str | None
    actor: str | None
    workflow_state: str | None = None


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule for display; lists leave `runs` and `coming` empty.

    Either `cron` or `every` is set, and `words` says what it means; `coming` are the next slots.
    """

    id: int
    name: str
    namespace: str
    cron: str | None
    zone: str
    overlap: str
    catch_up: str
    catch_up_limit: int
    paused: bool
    next_at: str | None
    last_slot: str | None
    template: str | None
    parameters: dict[str, Any]
    jobs: list[dict[str, Any]]
    priority: int | str | None
    created_at: str
    created_by: str | None
    runs: list[ScheduleRun]
    every: str | None = None
    words: str = ""
    coming: list[str] = []


class ScheduleList(msgspec.Struct, frozen=True):
    schedules: list[Schedule]


class SchedulePut(msgspec.Struct, frozen=True, kw_only=True):
    """`applied` is False if nothing changed."""

    applied: bool
    schedule: Schedule


class ReactionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One reaction to one end of a workflow, and its outcome.

    `result` is the submitted workflow, the number of retried jobs, or the receiver's HTTP
    status.
    """

    id: int
    run: int
    on: str
    kind: str
    state: str
    tries: int
    next_at: str | None
    created_at: str
    finished_at: str | None
    result: int | None
    message: str | None


class ReactionList(msgspec.Struct, frozen=True):
    reactions: list[ReactionInfo]
