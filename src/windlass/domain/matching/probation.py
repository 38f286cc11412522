"""Judges workers by their infrastructure failures, compared with their peers (decision 036).

A worker is suspected if it fails far more often than others do with jobs of the same kinds. It then
gets one job at a time, until enough jobs in a row have completed or the evidence has expired.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

MAX_TROUBLES: Final = 64  # the newest failures that are kept
GOOD_TESTS: Final = 3  # completed test jobs in a row that end a probation
MAX_CHANCE: Final = 1e-4  # accepted chance of suspecting a worker if all are alike
MAX_EXACT: Final = 300  # up to this number of failures, chances are computed exactly
MIN_RATIO: Final = 2.0  # how many times more often than its peers a suspected worker fails


class Trouble(NamedTuple):
    """The newest infrastructure failure of one job on a worker, which had run for `ran_ms`.

    Its shape is its kind.
    """

    at: int
    job: int
    shape: int
    ran_ms: int = 0


class Probation(Struct, frozen=True, omit_defaults=True):
    """How the test jobs of a suspected worker went."""

    good: int = 0  # completed in a row
    bad: int = 0  # failed since the last one that completed
    next_at: int = 0  # no test job before this time


class Conduct(Struct, frozen=True, omit_defaults=True):
    """The evidence against a worker, as its row keeps it."""

    troubles: tuple[Trouble, ...] = ()
    probation: Probation | None = None


CLEAN: Final = Conduct()

_decode = msgspec.json.Decoder(Conduct).decode
_encode = msgspec.json.Encoder().encode


def read_conduct(text: str | None) -> Conduct:
    """Decodes what a worker's row keeps; None is the text of a worker without evidence."""
    return CLEAN if text is None else _decode(text)


def write_conduct(conduct: Conduct) -> str | None:
    """Encodes the evidence for a worker's row."""
    return None if conduct == CLEAN else _encode(conduct).decode()


def with_trouble(conduct: Conduct, trouble: Trouble, window_ms: int) -> Conduct:
    """Returns the evidence after a failure. On probation, older evidence stays."""
    kept = [
        old
        for old in conduct.troubles
        if old.job != trouble.job
        and (conduct.probation is not None or trouble.at - old.at < window_ms)
    ]
    return replace(conduct, troubles=(*kept, trouble)[-MAX_TROUBLES:])


def after_tests(probation: Probation, completed: int) -> Probation:
    """Returns the probation after test jobs that completed."""
    return replace(probation, good=probation.good + completed, bad=0, next_at=0)


def after_failed_test(probation: Probation, now: int, pause_ms: int, max_ms: int) -> Probation:
    """Returns the probation after a failed test job: each pause is twice as long."""
    wait = min(pause_ms << min(probation.bad, 20), max_ms)
    return Probation(0, probation.bad + 1, now + wait)


def may_take(conduct: Conduct, held: int, now: int) -> int:
    """Returns how many jobs a worker on probation may take: one, if it holds none."""
    probation = conduct.probation or Probation()
    return int(not held and now >= probation.next_at)


class Trials(NamedTuple):
    """How many attempts of one kind ended, and how many of them with an infrastructure failure."""

    ended: int = 0
    failed: int = 0


class Blame(NamedTuple):
    """Why a worker is suspected: its failures, and the rate of its peers for the same kinds."""

    failed: int
    ended: int
    usual: float


def blame(
    own: Mapping[int, Trials], peers: Mapping[int, Trials], workers: int, least: int
) -> Blame | None:
    """Returns the case against a worker, by kind of job; None if it may be like its peers.

    `workers` are judged at the same time, which makes chance hits more likely. `least` is the
    minimum number of failures.
    """
    pairs = [(own[kind], peers[kind]) for kind in own if peers.get(kind, Trials()).ended]
    ended = sum(mine.ended for mine, _ in pairs)
    failed = sum(mine.failed for mine, _ in pairs)
    usual = sum(mine.ended * others.failed / others.ended for mine, others in pairs)
    if failed < max(least, 1) or failed < MIN_RATIO * usual:
        return None
    if _chance(pairs, ended, failed) > MAX_CHANCE / max(workers, 1):
        return None
    return Blame(failed, ended, usual / ended)


Pair = tuple[Trials, Trials]  # of one kind: the worker's, and its peers'


def _chance(pairs: Sequence[Pair], ended: int, failed: int) -> float:
    """Returns an upper bound for the chance of this many failures if all workers are alike.

    It is exact unless there are many failures.
    """
    total = sum(mine.failed + others.failed for mine, others in pairs)
    if total <= MAX_EXACT:
        shares = [1.0]
        for mine, others in pairs:
            shares = _convolved(shares, _here(mine, others))
        return sum(shares[failed:])
    mean = sum(
        mine.ended * (mine.failed + others.failed) / (mine.ended + others.ended)
        for mine, others in pairs
    )
    if failed <= mean:
        return 1.0
    share, expected = failed / ended, mean / ended
    divergence = share * math.log(share / expected)
    if share < 1:
        divergence += (1 - share) * math.log((1 - share) / (1 - expected))
    return math.exp(-ended * divergence)


def _here(mine: Trials, others: Trials) -> list[float]:
    """Returns the probability of each number of one kind's failures on the worker."""
    ended, failed = mine.ended + others.ended, mine.failed + others.failed
    ways = math.comb(ended, failed)
    return [
        math.comb(mine.ended, here) * math.comb(others.ended, failed - here) / ways
        for here in range(min(mine.ended, failed) + 1)
    ]


def _convolved(one: Sequence[float], other: Sequence[float]) -> list[float]:
    """Returns the distribution of the sum of two independent numbers."""
    found = [0.0] * (len(one) + len(other) - 1)
    for n, chance in enumerate(one):
        for m, share in enumerate(other):
            found[n + m] += chance * share
    return found


def unshared(conduct: Conduct, elsewhere: Collection[int]) -> list[Trouble]:
    """Returns the failures of jobs that did not also fail on other workers."""
    return [trouble for trouble in conduct.troubles if trouble.job not in elsewhere]
