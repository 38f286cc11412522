"""What workers report about the functions they have imported, so that a page can offer a form.

A worker is not trusted: its report is read into fixed fields, bounded in number and size, and text
keeps only printable characters. Whatever does not fit is left out.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from windlass.domain.values.json_values import DEPTH_LIMIT, refuse_deep

MAX_TASKS: Final = 100  # of one worker
MAX_SHOWN: Final = 1_000  # of all workers together
TASK_LIMIT: Final = 4_096  # bytes of one task as JSON
ALL_LIMIT: Final = 48 * 1_024  # bytes of all tasks of a worker
NAME_LIMIT: Final = 500
DOC_LIMIT: Final = 200

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class ReportedTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function that a worker has imported.

    `name` is the name of its task, or its path; `schema` describes its arguments as an object. If
    they are `positional`, they are given as a list in this `order`. `options` are the options of
    its jobs.
    """

    name: str
    path: str
    doc: str = ""
    schema: dict[str, Any] = {}
    options: dict[str, Any] = {}
    positional: bool = False
    order: list[str] = []
    version: str | None = None


def pack(tasks: Iterable[ReportedTask]) -> list[dict[str, Any]]:
    """Returns a worker's report: the tasks that fit, without schemas that are too long."""
    reported: list[dict[str, Any]] = []
    left = ALL_LIMIT
    for task in tasks:
        short = task
        if _size(task) > TASK_LIMIT:
            short = msgspec.structs.replace(task, schema={}, options={}, order=[])
        left -= _size(short)
        if left < 0 or len(reported) == MAX_TASKS:
            break
        reported.append(msgspec.to_builtins(short))
    return reported


def unpack(reported: object) -> list[ReportedTask]:
    """Returns the tasks a worker reported, as far as they fit; never raises."""
    listed = reported[:MAX_TASKS] if isinstance(reported, list) else ()
    return [task for one in listed if (task := _read(one)) is not None]


def _read(one: object) -> ReportedTask | None:
    try:
        task = msgspec.convert(one, ReportedTask)
        refuse_deep(one, "task")
        if _size(task) > TASK_LIMIT:
            return None
    except Exception:  # A worker may send anything; this entry is not shown.
        return None
    name, path = _plain(task.name, NAME_LIMIT), _plain(task.path, NAME_LIMIT)
    if not name or name != task.name or path != task.path:
        return None
    return ReportedTask(
        name=name,
        path=path,
        doc=_plain(task.doc, DOC_LIMIT),
        schema=_clean(task.schema),
        options=_clean(task.options),
        positional=task.positional,
        order=[_plain(one, NAME_LIMIT) for one in task.order],
        version=None if task.version is None else _plain(task.version, NAME_LIMIT),
    )


def _size(task: ReportedTask) -> int:
    return len(_encode(task))


def _plain(text: str, limit: int) -> str:
    """Returns text without control and other unprintable characters, cut to length."""
    return "".join(one for one in text[:limit] if one.isprintable())


def _clean(value: Any, depth: int = 0) -> Any:
    if depth > DEPTH_LIMIT:
        return None
    if isinstance(value, str):
        return _plain(value, TASK_LIMIT)
    if isinstance(value, Mapping):
        return {_plain(key, NAME_LIMIT): _clean(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_clean(one, depth + 1) for one in value]
    return value
