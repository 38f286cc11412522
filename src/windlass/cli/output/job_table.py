"""The table of jobs: what each column shows, and which are shown unless others are chosen."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from windlass.cli.output.job_view import expected, show_progress
from windlass.cli.output.tables import CUT, Layout, make_table, print_table
from windlass.clock import RealClock
from windlass.domain.tasks.references import RESULT, TEXT
from windlass.domain.values.errors import InvalidInput, UnknownName
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import parse_moment, readable_duration
from windlass.messages.jobs import Job

if TYPE_CHECKING:
    from rich.table import Table

COMMAND_LIMIT: Final = 48  # characters; `show` and --json have the whole command
PROGRESS_LIMIT: Final = 32
DAY_MS: Final = 86_400_000

Column = Callable[[Job, int], object]


def command_of(job: Job) -> str:
    """Returns what a job runs, in short: its command, its function, or else its task."""
    args = job.args if isinstance(job.args, dict) else {}
    shown = job.task
    if job.task == "shell" and isinstance(args.get("argv"), list):
        words = [_word(word) for word in args["argv"]]
        is_line = len(words) == 3 and words[0] in ("sh", "bash") and words[1] == "-c"
        shown = words[2] if is_line else " ".join(map(_quoted, words))
    elif job.task == "python" and isinstance(args.get("function"), str):
        shown = args["function"]
    return _one_line(shown, COMMAND_LIMIT)


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _quoted(word: str) -> str:
    return word if word.startswith("${{") else shlex.quote(word)


def _word(word: object) -> str:
    """Returns a word of a command; results of other jobs in it as workflow files name them."""
    if isinstance(word, dict) and len(word) == 1:
        if isinstance(parts := word.get(TEXT), list):
            return "".join(map(_word, parts))
        if RESULT in word:
            named = word[RESULT] if isinstance(word[RESULT], dict) else {"job": word[RESULT]}
            output = f".outputs.{named['output']}" if "output" in named else ".result"
            return f"${{{{ jobs.{named.get('job')}{output} }}}}"
    return str(word)


def _duration(job: Job, now: int) -> str | None:
    """Returns how long its newest attempt ran, or has run until now."""
    if job.started_at is None or (job.finished_at is None and job.state != "running"):
        return None
    end = now if job.finished_at is None else parse_moment(job.finished_at, "finished")
    return readable_duration(max(0, end - parse_moment(job.started_at, "started")))


def rough_age(ms: int) -> str:
    """Formats how long ago something was, in one part: 4 s, 12 min, 5 h, 3 d.

    Seconds are rounded as those of durations are: no job has run for longer than it exists.
    """
    whole = (max(ms, 0) + 500) // 1_000 * 1_000
    for name, unit in (("d", DAY_MS), ("h", 3_600_000), ("min", 60_000)):
        if whole >= (2 * DAY_MS if name == "d" else unit):
            return f"{whole // unit} {name}"
    return f"{whole // 1_000} s"


def _progress(job: Job) -> str | None:
    """Returns how far a running job is, on one short line."""
    if job.progress is None or job.finished_at is not None:
        return None
    shown = show_progress(job.progress)
    text = shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()
    return _one_line(text, PROGRESS_LIMIT)


COLUMNS: Final[Mapping[str, Column]] = {
    "id": lambda job, _: job.id,
    "state": lambda job, _: job.state,
    "name": lambda job, _: job.name,
    "command": lambda job, _: command_of(job),
    "queue": lambda job, _: job.queue,
    "duration": _duration,
    "age": lambda job, now: rough_age(now - parse_moment(job.created_at, "created")),
    "priority": lambda job, _: job.priority.effective,
    "attempt": lambda job, _: job.attempt,
    "worker": lambda job, _: job.worker,
    "expected": lambda job, _: expected(job),
    "progress": lambda job, _: _progress(job),
    "reason": lambda job, _: job.reason,
    "task": lambda job, _: job.task,
    "namespace": lambda job, _: job.namespace,
    "workflow": lambda job, _: job.workflow,
    "labels": lambda job, _: ",".join(f"{name}={value}" for name, value in job.labels.items()),
    "key": lambda job, _: job.key,
    "by": lambda job, _: job.submitted_by,
    "created": lambda job, _: job.created_at,
    "started": lambda job, _: job.started_at,
    "finished": lambda job, _: job.finished_at,
    "exit": lambda job, _: job.exit_code,
}
USUAL: Final = tuple(COLUMNS)[:13]
# Each job is one line. A narrow terminal goes without these columns, the least useful one first.
_ONE_LINE: Final = Layout(cut=CUT | {"name", "queue"})
NARROWED: Final = _ONE_LINE._replace(
    spare=("priority", "attempt", "progress", "expected", "reason", "worker", "name", "queue",
           "duration")
)  # fmt: skip


def read_columns(text: str | None) -> Sequence[str]:
    """Returns the columns of a comma-separated list, or the usual ones; raises for unknown ones."""
    if text is None:
        return USUAL
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInput("--columns", "names separated by commas", text)
    for name in names:
        if name not in COLUMNS:
            listed = f"one of {', '.join(COLUMNS)}"
            raise UnknownName("column", name, listed, did_you_mean(name, COLUMNS))
    return list(dict.fromkeys(names))


def print_jobs(jobs: Sequence[Job], columns: Sequence[str]) -> None:
    """Prints jobs, one on each line."""
    print_table(columns, _rows(jobs, columns), "no jobs", layout_of(columns))


def table_of(jobs: Sequence[Job], columns: Sequence[str], room: int, layout: Layout) -> "Table":
    """Returns the table for a view that is redrawn."""
    return make_table(columns, _rows(jobs, columns), room, layout)


def layout_of(columns: Sequence[str]) -> Layout:
    """Returns how to make room: columns that somebody has chosen are all shown."""
    return NARROWED if columns is USUAL else _ONE_LINE


def _rows(jobs: Sequence[Job], columns: Sequence[str]) -> list[list[object]]:
    now = RealClock().now_ms()
    return [[COLUMNS[name](job, now) for name in columns] for job in jobs]
