"""What failed for the same reason is told once, and rates are compared with the day before."""

from typing import Any

import msgspec
import pytest

from tests.store.conformance.rows import facts, new_job
from windlass.domain.lifecycle.failures import ExceptionInfo
from windlass.domain.lifecycle.states import State
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.series import Figures
from windlass.operations.failures import group_failures, spikes

SHAPES = {1: Shape(namespace="team", queue="q", task="shell")}


def failed(job: int, message: str, at: int = 0, frame: str = "", **spec: Any) -> JobRecord:
    """A job that failed with a message, in a function if it has a frame."""
    traceback = f'  File "/site/{frame}", line 7, in work\n' if frame else ""
    raised = ExceptionInfo("ValueError", message, traceback)
    return JobRecord(
        facts=facts(new_job(job), state=State.FAILED.code),
        assigned_at=None, started_at=None, finished_at=at or job, failure=1, exit_code=None,
        message=message, reason=None, result=msgspec.json.encode(raised) if frame else None,
        spec=msgspec.json.encode({"task": "shell", **spec}),
    )  # fmt: skip


def titles(*jobs: JobRecord) -> list[tuple[str, str]]:
    return [(group.title(SHAPES), group.reason) for group in group_failures(jobs, SHAPES)]


def test_numbers_and_quoted_values_do_not_make_another_error() -> None:
    burst = [failed(n, f"no customer {n} in 'db{n}'", name=f"import-{n}") for n in range(1, 68)]
    other = failed(90, "disk full", name="import-90")
    assert titles(*burst, other) == [
        ("67 jobs (import-…) failed", "no customer 67 in 'db67'"),
        ("Job 90 (import-90) failed", "disk full"),
    ]


def test_programs_with_the_same_exit_code_are_different_errors() -> None:
    jobs = [
        failed(n, "exit code 2", args={"argv": [f"/bin/{p}", "x"]}) for n, p in ((1, "a"), (2, "b"))
    ]
    assert [title for title, _ in titles(*jobs)] == ["Job 2 (b) failed", "Job 1 (a) failed"]


def test_programs_that_said_something_else_are_different_errors() -> None:
    said = ["exit code 1: no host db1", "exit code 1: disk full", "exit code 1: no host db2"]
    jobs = [failed(n, text, args={"argv": ["sync"]}) for n, text in enumerate(said, 1)]
    assert titles(*jobs) == [
        ("2 jobs (sync) failed", "exit code 1: no host db2"),
        ("Job 2 (sync) failed", "exit code 1: disk full"),
    ]


def test_the_place_in_the_code_tells_errors_with_one_message_apart() -> None:
    jobs = [
        failed(1, "bad", frame="a.py"),
        failed(2, "bad", frame="b.py"),
        failed(3, "bad", frame="a.py"),
    ]
    assert titles(*jobs) == [
        ("2 jobs (shell) failed", "bad (a.py:7)"),
        ("Job 2 (shell) failed", "bad (b.py:7)"),
    ]


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        ((30, 30), (100, 0), "30 of 60 jobs failed in the last hour (50%), 0% in the day before."),
        ((30, 30), (100, 60), None),  # it always fails that often
        ((900, 9), (100, 0), None),  # too few to tell
        ((0, 10), None, "10 of 10 jobs failed in the last hour (100%), 0% in the day before."),
    ],
)
def test_a_rate_beyond_normal_is_told(
    now: tuple[int, int], before: tuple[int, int] | None, expected: str | None
) -> None:
    def figures(ends: tuple[int, int]) -> Figures:
        return Figures(completed=ends[0], failed=ends[1])

    past = {} if before is None else {"q": figures(before)}
    found = spikes({"q": figures(now)}, past)
    assert [spike.reason for spike in found] == ([expected] if expected else [])
