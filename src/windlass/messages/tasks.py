"""Messages about tasks and their arguments, version 1."""

from typing import Any

import msgspec


class TaskInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A task, or a function by its path, as a form needs it.

    `schema` is the JSON schema of its arguments, empty if unknown; if `positional`, they are sent
    as a list, in this `order`. `options` are the defaults of its jobs. `workers` counts the workers
    that have it; it is 0 for built-in tasks.
    """

    name: str
    is_built_in: bool
    doc: str
    schema: dict[str, Any]
    options: dict[str, Any] = {}
    path: str | None = None
    positional: bool = False
    order: list[str] = []
    version: str | None = None
    workers: int = 0


class TaskList(msgspec.Struct, frozen=True):
    """With `more`, workers have reported further ones."""

    tasks: list[TaskInfo]
    more: bool = False


class PreviewRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job as in a submission, which may still be wrong or incomplete."""

    job: dict[str, Any]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a field of a job, such as `args.argv` or `timeout`."""

    field: str
    message: str


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a job, or how to submit it by command line and by Python.

    `call` runs its function locally, without a queue. `notes` do not prevent its submission.
    """

    problems: list[Problem]
    command: str | None = None
    python: str | None = None
    call: str | None = None
    notes: list[str] = []
