"""Delays and times that count from the submission of a job."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec, canonical_options
from windlass.domain.job.validation import Validator
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_moment

NOW = 1_900_000_000_000


def settled(**options: Any) -> JobSpec:
    spec = JobSpec(task="t", **canonical_options(options))
    return Validator(Config()).validate(spec, now=NOW).spec


@pytest.mark.parametrize("delay", ["10s", 10, "10", 10.0, "10000ms", timedelta(seconds=10)])
def test_a_delay_counts_from_the_submission(delay: object) -> None:
    job = settled(delay=delay)
    assert (job.not_before_ms, job.delay) == (NOW + 10_000, None)


@pytest.mark.parametrize("name", ["not_before", "start_before", "finish_before"])
def test_times_are_given_in_every_form(name: str) -> None:
    at = datetime.fromtimestamp(NOW / 1000, UTC) + timedelta(minutes=15)
    elsewhere = at.astimezone(timezone(timedelta(hours=-7)))
    for form in ("15m", "900", timedelta(minutes=15), at, elsewhere, at.isoformat()):
        assert getattr(settled(**{name: form}), name) == format_moment(NOW + 900_000), form
    for wrong in (at.replace(tzinfo=None), "soon", 15, timedelta(-1)):
        with pytest.raises(InvalidInput, match=r"a time such as .*, with its zone"):
            settled(**{name: wrong})


def test_a_job_with_a_delay_and_a_time_may_start_after_both() -> None:
    assert settled(delay="1m", not_before="2m").not_before_ms == NOW + 120_000
    assert settled(delay="3m", not_before="2m").not_before_ms == NOW + 180_000
    assert settled(delay=0, not_before="2m").not_before_ms == NOW + 120_000


def test_a_start_that_could_only_be_too_late_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a time after not_before"):
        settled(delay="10m", start_before="5m")


def test_durations_may_be_timedeltas() -> None:
    assert canonical_options({"timeout": timedelta(minutes=2)}) == {"timeout": 120.0}
    with pytest.raises(InvalidInput, match="a duration longer than 0"):
        canonical_options({"timeout": timedelta()})
    with pytest.raises(InvalidInput, match="a duration such as"):
        canonical_options({"timeout": timedelta(seconds=-1)})
    assert canonical_options({"timeout": timedelta(microseconds=1)}) == {"timeout": 0.001}
