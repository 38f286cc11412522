"""Decides whether a failed attempt is retried, and when.

Failed, lost and returned attempts are counted separately. The store keeps the wait as
`not_before`; nothing sleeps.
"""

from typing import Annotated, Final, Literal

from msgspec import Struct

from windlass.domain.lifecycle.failures import (
    FAILURE_BY_NAME,
    NOTHING_RAISED,
    FailureClass,
    Raised,
)
from windlass.domain.values.options import doc
from windlass.domain.values.quantities import DURATION_LIMIT_MS, counted

# What is retried by default: not a timeout, as the next attempt would take as long.
RETRIED_BY_DEFAULT: Final[frozenset[FailureClass]] = frozenset(
    {FailureClass.WORKER_LOST, FailureClass.NETWORK, FailureClass.RESOURCE}
)


class RetryPolicy(Struct, frozen=True):
    """How often a job is retried, and after how long."""

    max_retries: Annotated[
        int,
        doc(
            "Maximum retries after failed attempts, unless the job sets `retries`. 0: none.",
            "retries",
        ),
    ] = 3
    max_lost: Annotated[
        int,
        doc(
            "Maximum retries after attempts that lost their worker while alone on it, counted "
            "separately. 0: none.",
            "retries",
        ),
    ] = 3
    max_returned: Annotated[
        int,
        doc(
            "How often a job may be handed back unstarted, or lose a worker that also held other "
            "jobs, before it fails.",
            "returns",
        ),
    ] = 20
    initial_backoff_ms: Annotated[int, doc("Wait before the first retry. 0: none.")] = 5_000
    multiplier: Annotated[
        float,
        doc(
            "Each retry waits this many times longer than the previous one. 1: the same.",
            "factor",
            least=1,
        ),
    ] = 2.0
    max_backoff_ms: Annotated[int, doc("The longest wait before a retry.")] = 300_000
    jitter: Annotated[
        float,
        doc(
            "The largest fraction by which a wait is randomly shortened, 0 to 1. 0: none.",
            "fraction",
        ),
    ] = 0.0
    poison_losses: Annotated[
        int,
        doc(
            "A job that lost its worker this many times while alone on it is quarantined as "
            "failed. 0: never.",
            "attempts",
        ),
    ] = 3
    poison_workers: Annotated[
        int,
        doc(
            "A job is only quarantined if it lost attempts on this many workers.",
            "workers",
            least=1,
        ),
    ] = 2


class RetryRules(Struct, frozen=True):
    """A job's own retry rules: classes of failures and names of exceptions."""

    asked: bool = False  # `retries` was given
    retry_on: tuple[str, ...] = ()
    no_retry_on: tuple[str, ...] = ()


NO_RULES: Final = RetryRules()


class Retry(Struct, frozen=True):
    """Retry after `after_ms`; `counts` names the counter that rises by one."""

    after_ms: int
    counts: Literal["failed", "lost", "returned", "none"]


class GiveUp(Struct, frozen=True):
    """The job has failed for good. `quarantined` means that it may have killed its workers."""

    reason: str
    quarantined: bool = False


def backoff_ms(policy: RetryPolicy, retry: int, chance: float = 0.0) -> int:
    """Returns the wait before retry `retry` (from 0); `chance` is a random number from 0 to 1."""
    try:
        wait = min(
            policy.initial_backoff_ms * policy.multiplier ** max(retry, 0), policy.max_backoff_ms
        )
    except OverflowError:
        wait = policy.max_backoff_ms if policy.initial_backoff_ms else 0
    return int(wait * (1.0 - policy.jitter * chance))


def decide_retry(
    policy: RetryPolicy,
    failure: FailureClass,
    *,
    failed: int,
    lost: int,
    lost_on_workers: int,
    rules: RetryRules = NO_RULES,
    raised: Raised = NOTHING_RAISED,
    started: bool = True,
    misfit: bool = False,
    blameless: bool = False,
    shared: bool = False,
    suspected: bool = False,
    returned: int = 0,
    chance: float = 0.0,
) -> Retry | GiveUp:
    """Decides what happens after a failure.

    `failed` and `lost` count the earlier failures; `lost_on_workers` counts the different workers
    lost with this job, including this one. `rules` are the job's own. `started` tells whether any
    part of the attempt ran. A `misfit` is a job whose arguments were refused. `blameless` marks
    attempts that ended through no fault of the job (a drain that took too long, preemption, server
    unreachable). `shared` marks the loss of a worker that also held other jobs: it counts like a
    hand-back, and is retried at once unless the job was already `suspected`.
    """
    if failure is FailureClass.CANCELED:
        return GiveUp("canceled jobs are not retried")
    if raised.asks == "abort":
        return GiveUp("not retried, as its task raised windlass.Abort")
    forbidden = _first_match(rules.no_retry_on, failure, raised)
    if forbidden is not None and raised.asks is None and started:
        return GiveUp(f"not retried after {forbidden} (no_retry_on)")
    if blameless:
        return Retry(after_ms=0, counts="none")
    if failure is FailureClass.WORKER_LOST and shared:
        return _after_shared_loss(policy, returned, suspected, chance)
    if failure is FailureClass.WORKER_LOST:
        return _after_loss(policy, lost, lost_on_workers, chance)
    refused = None if raised.asks else _refusal(failure, rules, raised, started, misfit)
    if refused is not None:
        return GiveUp(refused)
    if failed >= policy.max_retries:
        return GiveUp(f"retries exhausted ({failed} of {policy.max_retries})")
    if raised.after_ms is not None:
        return Retry(min(max(raised.after_ms, 0), DURATION_LIMIT_MS), "failed")
    return Retry(after_ms=backoff_ms(policy, failed, chance), counts="failed")


def _refusal(
    failure: FailureClass, rules: RetryRules, raised: Raised, started: bool, misfit: bool
) -> str | None:
    """Returns why a failure is not retried; None if it is, as long as retries are left."""
    if _first_match(rules.retry_on, failure, raised) is not None:
        return None
    if failure is FailureClass.TIMEOUT and not started:
        return None  # The worker was at fault.
    if rules.asked and misfit:
        return f"{failure} failures are never retried: the job cannot run"
    if rules.asked and rules.retry_on:
        return f"{failure} failures are not retried (retry_on: {', '.join(rules.retry_on)})"
    if rules.asked or failure in RETRIED_BY_DEFAULT:
        return None
    return f"{failure} failures are not retried without `retries` or `retry_on`"


def _first_match(names: tuple[str, ...], failure: FailureClass, raised: Raised) -> str | None:
    """Returns the first of these classes and exceptions that describes the failure."""
    for name in names:
        named = FAILURE_BY_NAME.get(name)
        if named is failure or (named is None and name in raised.names):
            return name
        if named is FailureClass.TIMEOUT and "TimeoutError" in raised.names:
            return name
    return None


def decide_return(
    policy: RetryPolicy, *, returned: int, with_reason: bool, chance: float = 0.0
) -> Retry | GiveUp:
    """Decides what happens after a job was handed back unstarted, `returned` times before.

    It uses no retry. If the worker gave a reason, the job backs off, so that a job which every
    worker declines does not spin.
    """
    if returned >= policy.max_returned:
        times = counted(returned + 1, "time")
        return GiveUp(f"handed back too often ({times}, {policy.max_returned} allowed)")
    after_ms = backoff_ms(policy, returned, chance) if with_reason else 0
    return Retry(after_ms=after_ms, counts="none")


def _after_shared_loss(
    policy: RetryPolicy, returned: int, suspected: bool, chance: float
) -> Retry | GiveUp:
    if returned >= policy.max_returned:
        return GiveUp(
            f"lost its worker or was handed back too often ({counted(returned + 1, 'time')}, "
            f"{policy.max_returned} allowed)"
        )
    return Retry(backoff_ms(policy, 0, chance) if suspected else 0, counts="returned")


def _after_loss(
    policy: RetryPolicy, lost: int, lost_on_workers: int, chance: float
) -> Retry | GiveUp:
    losses = lost + 1
    if 0 < policy.poison_losses <= losses and lost_on_workers >= policy.poison_workers:
        return GiveUp(
            f"poison: lost {counted(losses, 'attempt')} on {counted(lost_on_workers, 'worker')}",
            quarantined=True,
        )
    if lost >= policy.max_lost:
        return GiveUp(f"retries after lost workers exhausted ({lost} of {policy.max_lost})")
    return Retry(after_ms=backoff_ms(policy, lost, chance), counts="lost")
