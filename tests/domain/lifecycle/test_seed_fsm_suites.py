"""The seven state-machine suites of seed 002, under the names they have there.

The table is written out once more, in the design's own words, so that a slip in
`TRANSITIONS` cannot repeat itself here.
"""

import pytest

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.retries import (
    GiveUp,
    Retry,
    RetryPolicy,
    RetryRules,
    backoff_ms,
    decide_retry,
)
from windlass.domain.lifecycle.states import (
    ACTIVE,
    TERMINAL,
    State,
    can_retry,
    is_active,
    is_terminal,
    parse_state,
    validate_transition,
)
from windlass.domain.lifecycle.timeouts import (
    TimeoutPolicy,
    limits_for,
    run_timeout_ms,
)
from windlass.domain.values.errors import InvalidTransition

DESIGN = """
(new)     | blocked, queued, rejected
blocked   | queued, aborted, canceled, skipped
queued    | assigned, blocked, rejected, canceled
assigned  | running, queued, retrying, timed_out, failed, canceled
running   | completed, failed, timed_out, retrying, canceling, suspended
canceling | canceled, completed, failed
timed_out | retrying, failed, canceling
retrying  | queued, blocked, failed, canceled
suspended | queued, blocked, failed, canceled
"""


def designs_pairs() -> set[tuple[State | None, State]]:
    pairs: set[tuple[State | None, State]] = set()
    for line in DESIGN.strip().splitlines():
        came_from, _, allowed = line.partition("|")
        name = came_from.strip()
        source = None if name == "(new)" else State(name)
        pairs |= {(source, State(to.strip())) for to in allowed.split(",")}
    return pairs


ALLOWED = designs_pairs()
EVERY_PAIR = [(source, to) for source in (None, *State) for to in State]


class TestStateTransitionValidation:
    def test_there_are_fourteen_states_and_new(self) -> None:
        assert len(EVERY_PAIR) == 15 * 14

    @pytest.mark.parametrize(("source", "to"), EVERY_PAIR)
    def test_every_pair(self, source: State | None, to: State) -> None:
        if (source, to) in ALLOWED:
            validate_transition(source, to)
            return
        with pytest.raises(InvalidTransition) as caught:
            validate_transition(source, to)
        message = str(caught.value)
        assert f"from {source or '(new)'} to {to}:" in message
        may_become = message.rpartition("may become ")[2]
        named = set() if may_become == "nothing" else {State(s) for s in may_become.split(", ")}
        assert named == {there for here, there in ALLOWED if here is source}

    def test_no_state_is_skipped_on_the_way_to_the_end(self) -> None:
        for source, to in [
            (None, State.RUNNING),
            (State.QUEUED, State.RUNNING),
            (State.QUEUED, State.COMPLETED),
            (State.ASSIGNED, State.COMPLETED),
            (State.RUNNING, State.QUEUED),
            (State.RUNNING, State.CANCELED),
        ]:
            with pytest.raises(InvalidTransition):
                validate_transition(source, to)

    def test_legacy_states_are_mapped(self) -> None:
        assert parse_state("pending") == {State.QUEUED}
        assert parse_state("processing") == {State.RUNNING}
        assert parse_state("paused") == {State.ASSIGNED}


class TestTerminalStateDetection:
    @pytest.mark.parametrize("state", State)
    def test_a_state_is_terminal_exactly_if_nothing_follows(self, state: State) -> None:
        assert is_terminal(state) is not any(source is state for source, _ in ALLOWED)

    def test_the_six_ends(self) -> None:
        ends = {"completed", "failed", "canceled", "aborted", "rejected", "skipped"}
        assert {state.value for state in State if is_terminal(state)} == ends
        assert {state.value for state in TERMINAL} == ends

    @pytest.mark.parametrize("end", sorted(TERMINAL))
    def test_an_ended_job_never_moves_again(self, end: State) -> None:
        for to in State:
            with pytest.raises(InvalidTransition, match=f"{end} may become nothing"):
                validate_transition(end, to)


class TestActiveStateDetection:
    def test_the_states_that_hold_a_lease(self) -> None:
        holding = {"assigned", "running", "canceling", "timed_out"}
        assert {state.value for state in State if is_active(state)} == holding
        assert {state.value for state in ACTIVE} == holding

    def test_a_waiting_or_ended_job_is_not_active(self) -> None:
        for state in (State.BLOCKED, State.QUEUED, State.RETRYING, *TERMINAL):
            assert not is_active(state)

    def test_a_lease_is_only_taken_from_the_queue(self) -> None:
        entered = {(source, to) for source, to in ALLOWED if is_active(to) and source not in ACTIVE}
        assert entered == {(State.QUEUED, State.ASSIGNED)}


class TestRetryEligibility:
    def test_the_states_a_retry_starts_from(self) -> None:
        eligible = {state for state in State if can_retry(state)}
        assert eligible == {State.ASSIGNED, State.RUNNING, State.TIMED_OUT}

    @pytest.mark.parametrize(
        ("failure", "retried"),
        [
            (FailureClass.WORKER_LOST, True),
            (FailureClass.NETWORK, True),
            (FailureClass.TIMEOUT, False),
            (FailureClass.RESOURCE, True),
            (FailureClass.EXECUTION, False),
            (FailureClass.CONFIGURATION, False),
            (FailureClass.CANCELED, False),
        ],
    )
    def test_transient_failures_are_retried_and_others_not(
        self, failure: FailureClass, retried: bool
    ) -> None:
        outcome = decide_retry(RetryPolicy(), failure, failed=0, lost=0, lost_on_workers=1)
        assert isinstance(outcome, Retry) is retried

    def test_an_explicit_cancellation_is_never_retried(self) -> None:
        outcome = decide_retry(
            RetryPolicy(),
            FailureClass.CANCELED,
            failed=0,
            lost=0,
            lost_on_workers=0,
            rules=RetryRules(asked=True, retry_on=tuple(FailureClass)),
        )
        assert isinstance(outcome, GiveUp)

    def test_a_canceling_job_cannot_come_back(self) -> None:
        with pytest.raises(InvalidTransition):
            validate_transition(State.CANCELING, State.RETRYING)


class TestTimeoutCalculation:
    policy = TimeoutPolicy()

    @pytest.mark.parametrize(
        ("task", "duration_s", "timeout_s"),
        [
            ("ffmpeg", 600, 1_200),
            ("gstreamer", 600, 630),
            ("ffmpeg", None, 1_800),
            ("gstreamer", None, 1_800),
            ("shell", None, 1_800),
        ],
    )
    def test_by_task_and_duration(self, task: str, duration_s: int | None, timeout_s: int) -> None:
        duration_ms = None if duration_s is None else duration_s * 1000
        assert run_timeout_ms(self.policy, task, duration_ms, None) == timeout_s * 1000

    def test_the_safety_buffer_of_ffmpeg(self) -> None:
        policy = TimeoutPolicy(ffmpeg_buffer_ms=60_000)
        assert run_timeout_ms(policy, "ffmpeg", 600_000, None) == 1_260_000

    def test_the_jobs_own_timeout_first(self) -> None:
        assert run_timeout_ms(self.policy, "ffmpeg", 600_000, 5_000) == 5_000

    def test_assigned_for_five_minutes_at_most(self) -> None:
        """tests/engine/attempts/test_timeouts.py shows that such an attempt ends."""
        assert self.policy.assigned_ms == 300_000

    def test_live_jobs_by_inactivity_and_batch_jobs_by_run_time(self) -> None:
        live = limits_for(self.policy, task="ffmpeg", queue="live", duration_ms=600_000)
        assert (live.run_ms, live.idle_ms) == (None, 300_000)
        batch = limits_for(self.policy, task="ffmpeg", queue="batch", duration_ms=600_000)
        assert (batch.run_ms, batch.idle_ms) == (1_200_000, None)


class TestBackoffCalculation:
    def test_it_doubles_from_5_s_and_is_capped_at_5_min(self) -> None:
        seconds = [backoff_ms(RetryPolicy(), retry) / 1000 for retry in range(8)]
        assert seconds == [5, 10, 20, 40, 80, 160, 300, 300]

    def test_the_formula_with_other_numbers(self) -> None:
        policy = RetryPolicy(initial_backoff_ms=1_000, multiplier=3.0, max_backoff_ms=20_000)
        assert [backoff_ms(policy, retry) for retry in range(4)] == [1_000, 3_000, 9_000, 20_000]

    def test_it_never_overflows(self) -> None:
        assert backoff_ms(RetryPolicy(), 10**9) == 300_000


class TestRetryPolicy:
    def test_the_defaults(self) -> None:
        policy = RetryPolicy()
        assert policy.max_retries == policy.max_lost == 3
        assert policy.initial_backoff_ms == 5_000
        assert policy.max_backoff_ms == 300_000
        assert policy.multiplier == 2.0

    def test_exhausted_retries_fail_and_say_so(self) -> None:
        def after(failed: int) -> Retry | GiveUp:
            return decide_retry(
                RetryPolicy(), FailureClass.NETWORK, failed=failed, lost=0, lost_on_workers=0
            )

        assert [after(n) for n in range(3)] == [
            Retry(5_000, "failed"),
            Retry(10_000, "failed"),
            Retry(20_000, "failed"),
        ]
        assert after(3) == GiveUp("retries exhausted (3 of 3)")

    def test_failed_and_lost_are_counted_apart(self) -> None:
        lost = decide_retry(
            RetryPolicy(), FailureClass.WORKER_LOST, failed=3, lost=0, lost_on_workers=1
        )
        failed = decide_retry(
            RetryPolicy(), FailureClass.NETWORK, failed=0, lost=3, lost_on_workers=3
        )
        assert lost == Retry(5_000, "lost")
        assert failed == Retry(5_000, "failed")

    def test_a_policy_of_its_own(self) -> None:
        once = RetryPolicy(max_retries=1)
        again = decide_retry(once, FailureClass.NETWORK, failed=0, lost=0, lost_on_workers=0)
        ended = decide_retry(once, FailureClass.NETWORK, failed=1, lost=0, lost_on_workers=0)
        assert again == Retry(5_000, "failed")
        assert ended == GiveUp("retries exhausted (1 of 1)")
