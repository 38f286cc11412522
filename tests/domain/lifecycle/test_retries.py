"""Whether and when a failed attempt is followed by another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.retries import (
    RETRIED_BY_DEFAULT,
    GiveUp,
    Retry,
    RetryPolicy,
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
    retry_on: frozenset[FailureClass] = frozenset(),
    blameless: bool = False,
    policy: RetryPolicy = DEFAULT,
) -> Retry | GiveUp:
    return decide_retry(
        policy,
        failure,
        failed=failed,
        lost=lost,
        lost_on_workers=lost_on_workers,
        retry_on=retry_on,
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


@pytest.mark.parametrize("failure", [FailureClass.EXECUTION, FailureClass.CONFIGURATION])
def test_lasting_failures_are_retried_only_if_the_job_opts_in(failure: FailureClass) -> None:
    assert decide(failure) == GiveUp(f"{failure} failures are not retried")
    other = frozenset(FailureClass) - {failure}
    assert decide(failure, retry_on=other) == GiveUp(f"{failure} failures are not retried")
    opted_in = frozenset({failure})
    assert decide(failure, retry_on=opted_in) == Retry(after_ms=5_000, counts="failed")
    assert isinstance(decide(failure, failed=3, retry_on=opted_in), GiveUp)


def test_opting_in_adds_to_the_default_and_takes_nothing_away() -> None:
    opted_in = frozenset({FailureClass.EXECUTION})
    assert isinstance(decide(FailureClass.NETWORK, retry_on=opted_in), Retry)


@pytest.mark.parametrize("blameless", [False, True])
def test_cancellation_is_never_retried(blameless: bool) -> None:
    outcome = decide(FailureClass.CANCELED, retry_on=frozenset(FailureClass), blameless=blameless)
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
    st.frozensets(st.sampled_from(FailureClass)),
)
def test_every_chain_of_failures_ends(
    failure: FailureClass, failed: int, lost: int, workers: int, opted: frozenset[FailureClass]
) -> None:
    outcome = decide(failure, failed=failed, lost=lost, lost_on_workers=workers, retry_on=opted)
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
