"""How long an attempt may take, and who acts on it when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.lifecycle.timeouts import (
    RunLimits,
    TimeoutPolicy,
    backstop_ms,
    idle_timeout_ms,
    limits_for,
    run_deadline_ms,
    run_timeout_ms,
)

DEFAULT = TimeoutPolicy()
MINUTE = 60_000


def test_the_defaults_are_the_designs() -> None:
    assert (DEFAULT.ffmpeg_factor, DEFAULT.ffmpeg_buffer_ms) == (2.0, 0)
    assert DEFAULT.gstreamer_extra_ms == 30_000
    assert DEFAULT.default_ms == 30 * MINUTE
    assert DEFAULT.assigned_ms == DEFAULT.idle_ms == 5 * MINUTE
    assert DEFAULT.idle_queues == ("live",)


@pytest.mark.parametrize(
    ("task", "duration_ms", "expected_ms"),
    [
        ("ffmpeg", 60_000, 120_000),
        ("gstreamer", 60_000, 90_000),
        ("ffmpeg", None, 1_800_000),
        ("gstreamer", None, 1_800_000),
        ("shell", None, 1_800_000),
        ("shell", 60_000, 1_800_000),
    ],
)
def test_the_limit_follows_task_and_duration(
    task: str, duration_ms: int | None, expected_ms: int
) -> None:
    assert run_timeout_ms(DEFAULT, task, duration_ms, None) == expected_ms


def test_the_buffer_is_added_for_ffmpeg() -> None:
    policy = TimeoutPolicy(ffmpeg_factor=1.5, ffmpeg_buffer_ms=7_000)
    assert run_timeout_ms(policy, "ffmpeg", 10_000, None) == 22_000
    assert run_timeout_ms(policy, "gstreamer", 10_000, None) == 40_000


@given(
    st.sampled_from(["ffmpeg", "gstreamer", "shell"]), st.none() | st.integers(0), st.integers(1)
)
def test_a_jobs_own_timeout_goes_first(task: str, duration_ms: int | None, own_ms: int) -> None:
    assert run_timeout_ms(DEFAULT, task, duration_ms, own_ms) == own_ms


def test_a_timeout_of_0_is_none() -> None:
    assert run_timeout_ms(DEFAULT, "ffmpeg", MINUTE, 0) is None
    assert run_timeout_ms(DEFAULT, "shell", None, None, queue_ms=0) is None


def test_live_jobs_time_out_on_inactivity_and_others_do_not() -> None:
    assert idle_timeout_ms(DEFAULT, "live", None) == 300_000
    assert idle_timeout_ms(DEFAULT, "default", None) is None
    assert idle_timeout_ms(DEFAULT, "live", 1_000) == 1_000
    assert idle_timeout_ms(DEFAULT, "batch", 1_000) == 1_000


def test_a_live_job_has_no_limit_on_run_time_unless_it_asks() -> None:
    live = limits_for(DEFAULT, task="ffmpeg", queue="live", duration_ms=60_000)
    assert live == RunLimits(run_ms=None, idle_ms=300_000)
    asked = limits_for(DEFAULT, task="ffmpeg", queue="live", own_run_ms=9_000)
    assert asked == RunLimits(run_ms=9_000, idle_ms=300_000)


def test_other_jobs_have_one_on_run_time() -> None:
    limits = limits_for(DEFAULT, task="ffmpeg", queue="default", duration_ms=60_000)
    assert limits == RunLimits(run_ms=120_000, idle_ms=None)
    both = limits_for(DEFAULT, task="shell", queue="default", own_run_ms=9_000, own_idle_ms=50)
    assert both == RunLimits(run_ms=9_000, idle_ms=50)


def test_the_start_stands_in_for_activity_until_there_is_some() -> None:
    limits = RunLimits(run_ms=None, idle_ms=500)
    assert run_deadline_ms(limits, 1_000, None) == 1_500
    assert run_deadline_ms(limits, 1_000, 4_000) == 4_500


def test_the_earlier_limit_counts_and_none_never_ends() -> None:
    both = RunLimits(run_ms=1_000, idle_ms=500)
    assert run_deadline_ms(both, 0, 900) == 1_000
    assert run_deadline_ms(both, 0, 400) == 900
    assert run_deadline_ms(RunLimits(None, None), 0, 0) is None


def overdue(limits: RunLimits, now_ms: int, last_activity_at_ms: int | None = None) -> bool:
    deadline = run_deadline_ms(limits, 1_000, last_activity_at_ms)
    return deadline is not None and now_ms >= backstop_ms(deadline, 10_000, 30_000)


def test_the_server_waits_for_the_agent_by_grace_and_one_heartbeat() -> None:
    assert backstop_ms(5_000, 10_000, 30_000) == 45_000
    limits = RunLimits(run_ms=5_000, idle_ms=None)
    assert not overdue(limits, 45_999)
    assert overdue(limits, 46_000)


def test_activity_keeps_a_live_job_running_however_long() -> None:
    limits = RunLimits(run_ms=None, idle_ms=5_000)
    day = 86_400_000
    assert not overdue(limits, now_ms=30 * day, last_activity_at_ms=30 * day - 5_000)
    assert overdue(limits, now_ms=30 * day, last_activity_at_ms=30 * day - 45_000)
    assert not overdue(RunLimits(None, None), now_ms=10**15)


@given(st.integers(0, 10**12), st.integers(1, 10**9), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_server_never_acts_before_the_agent_should_have(
    started: int, run_ms: int, grace: int, heartbeat: int
) -> None:
    deadline = run_deadline_ms(RunLimits(run_ms, None), started, None)
    assert deadline is not None
    assert backstop_ms(deadline, grace, heartbeat) >= deadline + grace
