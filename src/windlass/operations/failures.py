"""Groups what failed lately by its error, so that a person sees causes instead of jobs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from windlass.domain.job.kinds import command_of, decode_work
from windlass.domain.lifecycle.failures import ExceptionInfo
from windlass.domain.lifecycle.states import REJECTED
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.series import Figures
from windlass.domain.values.quantities import counted

MIN_FAILED: Final = 10  # fewer failures tell nothing about a rate
MAX_REASON: Final = 300  # characters
_PER_CALL: Final = re.compile(
    r"""'[^']*'|"[^"]*"|\b0x[0-9a-f]+\b|\b[0-9a-f-]{32,}\b|\d+""", re.IGNORECASE
)
_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


class Error(NamedTuple):
    """What jobs that failed for the same reason have in common: names and numbers left out."""

    state: int
    task: str
    name: str
    failure: int
    message: str
    frame: str


class FailedJobs(NamedTuple):
    """Jobs that failed for the same reason, the newest of them last."""

    error: Error
    jobs: list[JobRecord]

    @property
    def newest(self) -> JobRecord:
        """Returns the one that ended last."""
        return self.jobs[-1]

    @property
    def reason(self) -> str:
        """Returns what the newest one said, and where it was raised."""
        newest = self.newest
        said = _first_line(newest) or "It gave no reason."
        frame = _frame_of(newest)
        return said[:MAX_REASON] + (f" ({frame})" if frame else "")

    def title(self, shapes: Mapping[int, Shape]) -> str:
        """Returns which jobs ended how."""
        newest = self.newest
        verb = "was rejected" if self.error.state == REJECTED else "failed"
        if len(self.jobs) == 1:
            return f"Job {newest.facts.id} ({_label(newest, shapes)}) {verb}"
        verb = verb.replace("was", "were")
        names = Counter(_label(job, shapes) for job in self.jobs)
        label = next(iter(names)) if len(names) == 1 else self.error.name
        return f"{counted(len(self.jobs), 'job')} ({label}) {verb}"


def group_failures(records: Iterable[JobRecord], shapes: Mapping[int, Shape]) -> list[FailedJobs]:
    """Returns jobs by error, the largest group first."""
    groups: dict[Error, list[JobRecord]] = {}
    for record in sorted(records, key=lambda job: job.finished_at or 0):
        groups.setdefault(error_of(record, shapes), []).append(record)
    found = [FailedJobs(error, jobs) for error, jobs in groups.items()]
    return sorted(found, key=lambda group: (-len(group.jobs), -group.newest.facts.id))


def error_of(record: JobRecord, shapes: Mapping[int, Shape]) -> Error:
    """Returns what a failed job has in common with others that failed like it."""
    frame = _frame_of(record).partition(":")[0]
    return Error(
        record.facts.state or 0,
        shapes[record.facts.shape].task,
        _without_numbers(_label(record, shapes)),
        record.failure,
        _without_numbers(_first_line(record)),
        frame,
    )


class Spike(NamedTuple):
    """A queue whose jobs fail more often than before. Shares count failures among ended jobs."""

    queue: str
    failed: int
    ended: int
    before: float

    @property
    def reason(self) -> str:
        """Returns how often they fail now, and how often they did."""
        share = self.failed / self.ended
        return (
            f"{self.failed:,} of {self.ended:,} jobs failed in the last hour ({share:.0%}),"
            f" {self.before:.0%} in the day before."
        )


def spikes(now: Mapping[str, Figures], before: Mapping[str, Figures]) -> list[Spike]:
    """Returns the queues whose share of failures has doubled and rose by a tenth at least."""
    found: list[Spike] = []
    for queue, figures in sorted(now.items()):
        ended = figures.completed + figures.failed
        past = before.get(queue) or Figures()
        usual = past.failed / max(1, past.completed + past.failed)
        if figures.failed < MIN_FAILED:
            continue
        if figures.failed / ended >= max(2 * usual, usual + 0.1):
            found.append(Spike(queue, figures.failed, ended, usual))
    return found


_exception: Final = msgspec.json.Decoder(ExceptionInfo).decode


def _label(record: JobRecord, shapes: Mapping[int, Shape]) -> str:
    """Returns the name of a job, else its function or program."""
    work = decode_work(record.spec)
    if work.name:
        return work.name
    command = command_of(work)
    program = command.argv[0].rpartition("/")[2] if command.argv else ""
    return command.function or program or shapes[record.facts.shape].task


def _first_line(record: JobRecord) -> str:
    text = (record.message or record.reason or "").strip()
    return text.partition("\n")[0]


def _frame_of(record: JobRecord) -> str:
    """Returns the file and line where a function failed, if one did."""
    if record.result is None or not record.failure:
        return ""
    try:
        frames = _FRAME.findall(_exception(record.result).traceback)
    except msgspec.DecodeError:
        return ""
    return f"{frames[-1][0].rpartition('/')[2]}:{frames[-1][1]}" if frames else ""


def _without_numbers(text: str) -> str:
    """Returns a text without what differs from call to call."""
    return _PER_CALL.sub("…", text)
