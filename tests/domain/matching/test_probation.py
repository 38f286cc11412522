"""A worker is suspected for failing more often than its peers, and for nothing else."""

import random

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.probation import (
    CLEAN,
    MAX_TROUBLES,
    Conduct,
    Probation,
    Trials,
    Trouble,
    after_failed_test,
    after_tests,
    blame,
    may_take,
    read_conduct,
    unshared,
    with_trouble,
    write_conduct,
)

MIN_FAILURES = 5
WINDOW = 600_000

trials = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(
    lambda pair: Trials(pair[0] + pair[1], pair[1])
)
kinds = st.dictionaries(st.integers(1, 4), trials)


@given(kinds, kinds, st.integers(1, 1_000))
def test_what_a_worker_does_as_often_as_its_peers_is_never_held_against_it(
    own: dict[int, Trials], peers: dict[int, Trials], workers: int
) -> None:
    found = blame(own, peers, workers, MIN_FAILURES)
    if found is not None:
        assert found.failed >= MIN_FAILURES
        assert found.failed >= 2 * found.usual * found.ended


@given(kinds, kinds)
def test_kinds_that_fail_everywhere_or_run_nowhere_else_are_no_evidence(
    own: dict[int, Trials], peers: dict[int, Trials]
) -> None:
    all_fail = {kind: Trials(one.ended, one.ended) for kind, one in peers.items()}
    assert blame(own, all_fail, 5, MIN_FAILURES) is None
    assert blame(own, {}, 5, MIN_FAILURES) is None


@given(st.integers(5, 40), st.integers(0, 20), st.integers(1, 60))
def test_more_completions_never_make_a_worker_more_suspect(
    failed: int, more: int, peers: int
) -> None:
    others = {1: Trials(peers, 0)}
    with_more = blame({1: Trials(failed + more, failed)}, others, 5, MIN_FAILURES)
    without = blame({1: Trials(failed, failed)}, others, 5, MIN_FAILURES)
    assert with_more is None or without is not None


def test_few_jobs_are_enough_and_fewer_are_not() -> None:
    peers = {1: Trials(30, 0)}
    assert blame({1: Trials(5, 5)}, peers, 5, MIN_FAILURES) is not None
    assert blame({1: Trials(4, 4)}, peers, 5, MIN_FAILURES) is None
    assert blame({1: Trials(5, 5)}, {1: Trials(8, 0)}, 5, MIN_FAILURES) is None


def test_many_failures_are_judged_as_well() -> None:
    peers = {1: Trials(4_000, 400)}
    assert blame({1: Trials(500, 400)}, peers, 5, MIN_FAILURES) is not None
    assert blame({1: Trials(500, 60)}, peers, 5, MIN_FAILURES) is None


def test_chance_alone_hardly_ever_makes_a_worker_suspect() -> None:
    chance = random.Random(1)
    suspected = 0
    for rate in (0.03, 0.2, 0.5):
        for _ in range(300):
            fleet = [Trials(60, sum(chance.random() < rate for _ in range(60))) for _ in range(4)]
            for n, own in enumerate(fleet):
                rest = fleet[:n] + fleet[n + 1 :]
                peers = Trials(180, sum(one.failed for one in rest))
                suspected += blame({1: own}, {1: peers}, 4, MIN_FAILURES) is not None
    assert suspected <= 1


@given(st.lists(st.tuples(st.integers(0, 2 * WINDOW), st.integers(1, 100)), max_size=200))
def test_of_each_job_the_newest_failure_is_kept_and_not_too_many(
    failures: list[tuple[int, int]],
) -> None:
    conduct = CLEAN
    for at, job in sorted(failures):
        conduct = with_trouble(conduct, Trouble(at, job, 1), WINDOW)
        assert all(at - one.at < WINDOW for one in conduct.troubles)
    jobs = [one.job for one in conduct.troubles]
    assert len(jobs) == len(set(jobs)) <= MAX_TROUBLES
    assert read_conduct(write_conduct(conduct)) == conduct


@given(st.lists(st.booleans(), max_size=40))
def test_on_probation_jobs_come_one_by_one_and_pauses_are_bounded(tests: list[bool]) -> None:
    probation, now = Probation(), 0
    for works in tests:
        conduct = Conduct(probation=probation)
        assert may_take(conduct, held=1, now=now) == 0
        now = max(now, probation.next_at)
        assert may_take(conduct, held=0, now=now) == 1
        if works:
            probation = after_tests(probation, 1)
            assert may_take(Conduct(probation=probation), 0, now) == 1
        else:
            probation = after_failed_test(probation, now, 60_000, WINDOW // 2)
            assert probation.good == 0
            assert now < probation.next_at <= now + WINDOW // 2


def test_failures_of_jobs_that_failed_elsewhere_too_are_left_out() -> None:
    conduct = Conduct(tuple(Trouble(n, n, 1) for n in range(1, 6)))
    assert [one.job for one in unshared(conduct, {2, 4, 9})] == [1, 3, 5]
