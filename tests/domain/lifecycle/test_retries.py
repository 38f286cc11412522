"""Whether and when a failed attempt is followed by another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.lifecycle.failures import NOTHING_RAISED, FailureClass, Raised
from windlass.domain.lifecycle.retries import (
    NO_RULES,
    RETRIED_BY_DEFAULT,
    GiveUp,
    Retry,
    RetryPolicy,
    RetryRules,
    backoff_ms,
    decide_retry,
    decide_return,
)

DEFAULT = RetryPolicy()
COUNTED_AS_FAILED = sorted(RETRIED_BY_DEFAULT - {FailureClass.WORKER_LOST})


def decide(
    failure: FailureClass,
    *,
    failed: int = 0,
    lost: int = 0,
    lost_on_workers: int = 0,
    rules: RetryRules = NO_RULES,
    raised: Raised = NOTHING_RAISED,
    started: bool = True,
    misfit: bool = False,
    blameless: bool = False,
    policy: RetryPolicy = DEFAULT,
) -> Retry | GiveUp:
    return decide_retry(
        policy,
        failure,
        failed=failed,
        lost=lost,
        lost_on_workers=lost_on_workers,
        rules=rules,
        raised=raised,
        started=started,
        misfit=misfit,
        blameless=blameless,
    )


def test_the_defaults_are_the_designs() -> None:
    assert (DEFAULT.max_retries, DEFAULT.max_lost, DEFAULT.max_returned) == (3, 3, 20)
    assert (DEFAULT.initial_backoff_ms, DEFAULT.max_backoff_ms) == (5_000, 300_000)
    assert (DEFAULT.multiplier, DEFAULT.jitter) == (2.0, 0.0)
    assert (DEFAULT.poison_losses, DEFAULT.poison_workers) == (3, 2)


# Backoff


def test_the_series_is_5_10_20_40_up_to_300_seconds() -> None:
    series = [backoff_ms(DEFAULT, retry) // 1000 for retry in range(10)]
    assert series == [5, 10, 20, 40, 80, 160, 300, 300, 300, 300]


@pytest.mark.parametrize("retry", [1_000, 10**6, 10**400])
def test_a_huge_count_waits_the_maximum(retry: int) -> None:
    assert backoff_ms(DEFAULT, retry) == 300_000
    assert backoff_ms(RetryPolicy(initial_backoff_ms=0), retry) == 0


policies = st.builds(
    RetryPolicy,
    initial_backoff_ms=st.integers(0, 10**7),
    max_backoff_ms=st.integers(10**7, 10**12),
    multiplier=st.floats(1, 100),
    jitter=st.floats(0, 1),
)
chances = st.floats(0, 1)
counts = st.integers(0, 10**6)


@given(policies, counts, chances)
def test_a_wait_is_bounded_and_never_shrinks_with_the_count(
    policy: RetryPolicy, retry: int, chance: float
) -> None:
    wait = backoff_ms(policy, retry, chance)
    assert 0 <= wait <= policy.max_backoff_ms
    assert wait <= backoff_ms(policy, retry + 1, chance)


@given(policies, counts, chances)
def test_jitter_only_takes_off_its_fraction(policy: RetryPolicy, retry: int, chance: float) -> None:
    full = backoff_ms(policy, retry)
    wait = backoff_ms(policy, retry, chance)
    assert full * (1 - policy.jitter) - 1 <= wait <= full


def test_jitter_scales_by_chance() -> None:
    policy = RetryPolicy(jitter=0.5)
    assert backoff_ms(policy, 1, chance=0.0) == 10_000
    assert backoff_ms(policy, 1, chance=0.5) == 7_500
    assert backoff_ms(policy, 1, chance=1.0) == 5_000


# Which failures


@pytest.mark.parametrize("failure", COUNTED_AS_FAILED)
def test_passing_failures_count_as_failed(failure: FailureClass) -> None:
    assert decide(failure, lost=3, lost_on_workers=3) == Retry(after_ms=5_000, counts="failed")


def test_a_lost_worker_counts_apart() -> None:
    outcome = decide(FailureClass.WORKER_LOST, failed=3, lost_on_workers=1)
    assert outcome == Retry(after_ms=5_000, counts="lost")


@pytest.mark.parametrize(
    "failure", [FailureClass.EXECUTION, FailureClass.CONFIGURATION, FailureClass.TIMEOUT]
)
def test_lasting_failures_are_retried_only_if_the_job_opts_in(failure: FailureClass) -> None:
    never = GiveUp(f"{failure} failures are not retried without `retries` or `retry_on`")
    assert decide(failure) == never
    other = RetryRules(retry_on=tuple(map(str, set(FailureClass) - {failure})))
    assert decide(failure, rules=other) == never
    opted_in = RetryRules(retry_on=(str(failure),))
    assert decide(failure, rules=opted_in) == Retry(after_ms=5_000, counts="failed")
    assert isinstance(decide(failure, failed=3, rules=opted_in), GiveUp)


def test_opting_in_adds_to_the_default_and_takes_nothing_away() -> None:
    opted_in = RetryRules(retry_on=("execution",))
    assert isinstance(decide(FailureClass.NETWORK, rules=opted_in), Retry)


ASKED = RetryRules(asked=True)
ANY = sorted(set(FailureClass) - {FailureClass.CANCELED})


@pytest.mark.parametrize("failure", ANY)
def test_retries_mean_more_tries_after_any_failure(failure: FailureClass) -> None:
    assert isinstance(decide(failure, rules=ASKED, lost_on_workers=1), Retry)


@pytest.mark.parametrize("failure", ANY)
def test_with_retries_retry_on_lists_all_that_is_retried(failure: FailureClass) -> None:
    only = RetryRules(asked=True, retry_on=("network",))
    outcome = decide(failure, rules=only, lost_on_workers=1)
    retried = failure in (FailureClass.NETWORK, FailureClass.WORKER_LOST)
    assert isinstance(outcome, Retry) is retried
    if not retried:
        assert outcome == GiveUp(f"{failure} failures are not retried (retry_on: network)")


@pytest.mark.parametrize("failure", ANY)
def test_what_no_retry_on_names_is_never_retried(failure: FailureClass) -> None:
    name = str(failure)
    rules = RetryRules(asked=True, retry_on=(name,), no_retry_on=(name,))
    assert decide(failure, rules=rules) == GiveUp(f"not retried after {name} (no_retry_on)")
    stopped = decide(failure, rules=rules, blameless=True)
    assert stopped == GiveUp(f"not retried after {name} (no_retry_on)")
    other = RetryRules(asked=True, no_retry_on=tuple(str(c) for c in ANY if c is not failure))
    assert isinstance(decide(failure, rules=other, lost_on_workers=1), Retry)


def test_an_attempt_that_never_started_may_always_start_again() -> None:
    rules = RetryRules(no_retry_on=("worker_lost",))
    assert isinstance(decide(FailureClass.WORKER_LOST, rules=rules), GiveUp)
    assert isinstance(decide(FailureClass.WORKER_LOST, rules=rules, started=False), Retry)
    assert isinstance(decide(FailureClass.TIMEOUT), GiveUp)
    assert isinstance(decide(FailureClass.TIMEOUT, started=False), Retry)


def test_refused_arguments_are_retried_only_by_name() -> None:
    bad = FailureClass.CONFIGURATION
    assert isinstance(decide(bad, rules=ASKED, misfit=True), GiveUp)
    named = RetryRules(asked=True, retry_on=("configuration",))
    assert isinstance(decide(bad, rules=named, misfit=True), Retry)


VALUE_ERROR = Raised(("a.Mine", "ValueError", "Exception", "BaseException"))


@pytest.mark.parametrize("name", ["a.Mine", "ValueError", "Exception"])
def test_an_exception_is_matched_by_each_of_its_classes(name: str) -> None:
    work = FailureClass.EXECUTION
    asked = RetryRules(retry_on=(name,))
    assert isinstance(decide(work, rules=asked, raised=VALUE_ERROR), Retry)
    assert isinstance(decide(work, rules=asked, raised=Raised(("KeyError",))), GiveUp)
    forbidden = RetryRules(asked=True, no_retry_on=(name,))
    assert isinstance(decide(work, rules=forbidden, raised=VALUE_ERROR), GiveUp)
    assert isinstance(decide(work, rules=forbidden, raised=Raised(("KeyError",))), Retry)


def test_a_class_of_failures_is_not_taken_for_an_exception_of_that_name() -> None:
    rules = RetryRules(retry_on=("configuration",))
    raised = Raised(("configuration",))
    assert isinstance(decide(FailureClass.EXECUTION, rules=rules, raised=raised), GiveUp)


def test_a_raised_timeout_counts_as_one_for_those_who_ask_for_timeouts() -> None:
    rules = RetryRules(asked=True, retry_on=("timeout",))
    raised = Raised(("TimeoutError", "OSError"))
    assert isinstance(decide(FailureClass.NETWORK, rules=rules, raised=raised), Retry)
    assert isinstance(decide(FailureClass.NETWORK, rules=rules), GiveUp)


def test_a_task_may_ask_for_a_retry_within_the_limit() -> None:
    asks = Raised((), "retry")
    work = FailureClass.EXECUTION
    assert decide(work, raised=asks) == Retry(5_000, "failed")
    assert decide(work, raised=Raised((), "retry", 60_000)) == Retry(60_000, "failed")
    assert decide(work, raised=asks, failed=3) == GiveUp("retries exhausted (3 of 3)")
    narrow = RetryRules(asked=True, retry_on=("network",), no_retry_on=("execution",))
    assert isinstance(decide(work, raised=asks, rules=narrow), Retry)


@pytest.mark.parametrize(("told", "waits"), [(-5, 0), (2**62, 36_525 * 86_400_000)])
def test_a_wait_that_a_worker_makes_up_is_bounded(told: int, waits: int) -> None:
    raised = Raised((), "retry", told)
    assert decide(FailureClass.EXECUTION, raised=raised) == Retry(waits, "failed")


@pytest.mark.parametrize("failure", ANY)
def test_an_abort_is_never_retried(failure: FailureClass) -> None:
    rules = RetryRules(asked=True, retry_on=(str(failure),))
    outcome = decide(failure, rules=rules, raised=Raised((), "abort"))
    assert outcome == GiveUp("not retried, as its task raised windlass.Abort")


@pytest.mark.parametrize("blameless", [False, True])
def test_cancellation_is_never_retried(blameless: bool) -> None:
    rules = RetryRules(asked=True, retry_on=tuple(FailureClass))
    outcome = decide(FailureClass.CANCELED, rules=rules, blameless=blameless)
    assert outcome == GiveUp("canceled jobs are not retried")


@pytest.mark.parametrize("failure", sorted(set(FailureClass) - {FailureClass.CANCELED}))
def test_a_blameless_end_goes_back_at_once_and_uses_nothing_up(failure: FailureClass) -> None:
    outcome = decide(failure, failed=99, lost=99, lost_on_workers=99, blameless=True)
    assert outcome == Retry(after_ms=0, counts="none")


# Limits


def test_three_failed_retries_follow_the_series_and_then_it_ends() -> None:
    waits = []
    failed = 0
    while isinstance(outcome := decide(FailureClass.NETWORK, failed=failed), Retry):
        waits.append(outcome.after_ms)
        failed += 1
    assert waits == [5_000, 10_000, 20_000]
    assert outcome == GiveUp("retries exhausted (3 of 3)", quarantined=False)


def test_losses_on_one_worker_end_without_quarantine() -> None:
    outcomes = [decide(FailureClass.WORKER_LOST, lost=n, lost_on_workers=1) for n in range(4)]
    assert outcomes == [
        Retry(5_000, "lost"),
        Retry(10_000, "lost"),
        Retry(20_000, "lost"),
        GiveUp("retries after lost workers exhausted (3 of 3)", quarantined=False),
    ]


def test_a_job_with_no_retries_of_its_own_still_survives_its_worker() -> None:
    policy = RetryPolicy(max_retries=0)
    assert decide(FailureClass.NETWORK, policy=policy) == GiveUp("retries exhausted (0 of 0)")
    assert isinstance(decide(FailureClass.WORKER_LOST, lost_on_workers=1, policy=policy), Retry)


# Poison


@pytest.mark.parametrize(
    ("lost", "workers", "poison"),
    [(2, 2, True), (2, 3, True), (3, 2, True), (1, 2, False), (2, 1, False), (0, 2, False)],
)
def test_three_losses_on_two_workers_are_poison(lost: int, workers: int, poison: bool) -> None:
    outcome = decide(FailureClass.WORKER_LOST, lost=lost, lost_on_workers=workers)
    assert (isinstance(outcome, GiveUp) and outcome.quarantined) == poison


def test_poison_says_what_it_did() -> None:
    assert decide(FailureClass.WORKER_LOST, lost=2, lost_on_workers=2) == GiveUp(
        "poison: lost 3 attempts on 2 workers", quarantined=True
    )


def test_only_lost_workers_make_poison() -> None:
    outcome = decide(FailureClass.NETWORK, lost=9, lost_on_workers=9)
    assert isinstance(outcome, Retry)


def test_quarantine_can_be_turned_off() -> None:
    policy = RetryPolicy(poison_losses=0, max_lost=9)
    outcome = decide(FailureClass.WORKER_LOST, lost=5, lost_on_workers=5, policy=policy)
    assert outcome == Retry(160_000, "lost")


@given(
    st.sampled_from(FailureClass),
    st.integers(0, 50),
    st.integers(0, 50),
    st.integers(0, 50),
    st.builds(RetryRules, st.booleans(), st.lists(st.sampled_from(FailureClass)).map(tuple)),
    st.sampled_from([NOTHING_RAISED, VALUE_ERROR, Raised((), "retry", 0)]),
)
def test_every_chain_of_failures_ends(
    failure: FailureClass, failed: int, lost: int, workers: int, rules: RetryRules, raised: Raised
) -> None:
    outcome = decide(
        failure, failed=failed, lost=lost, lost_on_workers=workers, rules=rules, raised=raised
    )
    if isinstance(outcome, Retry):
        assert outcome.counts in ("failed", "lost")
        assert (failed < 3) if outcome.counts == "failed" else (lost < 3)


# Hand-backs


def test_a_hand_back_uses_no_retry_and_waits_only_with_a_reason() -> None:
    plain = decide_return(DEFAULT, returned=4, with_reason=False)
    assert plain == Retry(after_ms=0, counts="none")
    declined = decide_return(DEFAULT, returned=1, with_reason=True)
    assert declined == Retry(after_ms=10_000, counts="none")


def test_the_hand_back_over_the_limit_fails_the_job() -> None:
    assert isinstance(decide_return(DEFAULT, returned=19, with_reason=False), Retry)
    assert decide_return(DEFAULT, returned=20, with_reason=False) == GiveUp(
        "handed back too often (21 times, 20 allowed)"
    )
