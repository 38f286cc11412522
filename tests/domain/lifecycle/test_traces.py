"""Trace contexts of jobs."""

import pytest

from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import Validator, digest_of
from windlass.domain.lifecycle.traces import attempt_trace, parse_trace
from windlass.domain.values.errors import InvalidInput

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "wrong",
    ["", "x", TRACE.upper(), TRACE[:-1], "01" + TRACE[2:], TRACE + "\n",
     f"00-{'0' * 32}-b7ad6b7169203331-01", f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01"],
)  # fmt: skip
def test_what_is_no_traceparent_is_none(wrong: str) -> None:
    assert parse_trace(wrong) is None


def test_every_attempt_has_a_span_of_its_own_that_anybody_can_name() -> None:
    trace = parse_trace(TRACE)
    assert trace is not None
    assert trace.text == TRACE
    spans = {attempt_trace(trace, job, attempt).span for job in (1, 2) for attempt in (1, 2)}
    assert len(spans) == 4
    assert attempt_trace(trace, 1, 1) == attempt_trace(trace, 1, 1)


def test_a_repeated_submission_is_the_same_job_in_any_trace() -> None:
    traced = JobSpec(task="shell", key="k", trace=TRACE)
    assert digest_of(traced) == digest_of(JobSpec(task="shell", key="k"))


def test_a_job_with_something_else_is_refused() -> None:
    job = JobSpec(task="shell", args={"argv": ["true"]}, trace="mine")
    with pytest.raises(InvalidInput, match=r"job\.trace to be a W3C traceparent"):
        Validator(Config()).validate(job)
