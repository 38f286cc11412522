"""Sizing: enough workers and no more, within all limits, and without flapping."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.domain.pools.pool_fleets import NOW, pool, target
from windlass.domain.pools.scale import Host, Target
from windlass.domain.pools.sizing import (
    NEVER,
    Fleet,
    PoolNow,
    Verdict,
    affordable_workers,
    latency_ms,
    size,
    target_with,
    what_if,
)


def fleet(one: PoolNow, *targets: Target, hosts: Sequence[Host] = ()) -> Fleet:
    return Fleet(NOW, targets, tuple(hosts), (one,))


def verdict(one: PoolNow, *targets: Target, hosts: Sequence[Host] = ()) -> Verdict:
    (found,) = size(fleet(one, *targets, hosts=hosts))
    return found


def test_200_jobs_of_a_tenth_of_a_second_need_four_workers_for_five_seconds() -> None:
    found = verdict(PoolNow(pool()), target(200, 100))
    assert (found.start, found.work_ms, found.latency_ms) == (4, 20_000, NEVER)
    assert found.after_ms == 5_000
    assert found.reason == "no worker can run 200 queued jobs"


def test_what_runs_counts_with_what_is_left_of_it() -> None:
    hosts = [Host(1), Host(2)]
    busy = target(3, 1_000, hosts=[1, 2], left_ms=9_000, running=2)
    found = verdict(PoolNow(pool()), busy, hosts=hosts)
    assert (found.latency_ms, found.wanted, found.after_ms) == (6_000, 1, 4_000)


def test_nobody_needs_more_slots_than_there_are_jobs() -> None:
    assert verdict(PoolNow(pool()), target(1, 3_600_000)).start == 1
    assert verdict(PoolNow(pool()), target(6, 3_600_000, room=4)).start == 2


def test_those_on_their_way_count() -> None:
    hosts = [Host(n, "p") for n in range(4)]
    here = target(200, 100, hosts=range(4))
    found = verdict(PoolNow(pool(), serving=4, starting=4), here, hosts=hosts)
    assert found.start == 0
    assert found.reason == "estimated latency (5 s) is within the target of 5 s"


def test_work_of_a_pool_that_cannot_run_it_starts_nothing() -> None:
    other = target(9, 60_000)._replace(pools={})
    assert verdict(PoolNow(pool()), other).start == 0


def test_a_pool_of_which_nothing_is_known_sends_one_worker_ahead() -> None:
    unsure = target(500, 60_000)._replace(pools={}, guesses=frozenset({"p"}))
    assert verdict(PoolNow(pool()), unsure).start == 1
    assert verdict(PoolNow(pool(), serving=1, starting=1), unsure).start == 0
    assert verdict(PoolNow(pool(), known=True), unsure).start == 0


def test_busy_workers_of_others_leave_no_room() -> None:
    """The one host can run both, and is busy for long with what the pool cannot run."""
    foreign = Target("f", 0, 0, 1, 600_000, {1: 1}, {})
    mine = target(1, 1_000, hosts=[1])
    assert verdict(PoolNow(pool()), foreign, mine, hosts=[Host(1)]).start == 1
    nearly = foreign._replace(running_ms=2_000)
    assert verdict(PoolNow(pool()), nearly, mine, hosts=[Host(1)]).start == 0


def test_each_limit_is_named() -> None:
    much = target(1_000, 10_000)
    reasons = {
        "max_workers is 3": PoolNow(pool(max_workers=3), serving=1, leaving=1),
        "the pool is not enabled": PoolNow(pool(enabled=False)),
        "2 launches in a row failed, next try in 7 s: no quota": PoolNow(
            pool(), failures=2, next_at=NOW + 7_000, message="no quota"
        ),
        "after a failed launch, workers start one at a time": PoolNow(pool(), failures=1),
        "cooling down for another 4 s after the last start": PoolNow(
            pool(start_cooldown_ms=10_000), started_at=NOW - 6_000
        ),
        "5 min of this month's budget is left": PoolNow(
            pool(max_ms_per_month=600_000), used_ms=300_000
        ),
    }
    for reason, one in reasons.items():
        found = verdict(one, much)
        assert found.reason == reason
        assert found.start < found.wanted


def test_what_makes_it_want_workers_is_named_if_all_its_work_together_is_in_time() -> None:
    hosts = [Host(1, workers=9)]
    easy = target(1, 1_000, hosts=[1])
    known = PoolNow(pool(), known=True)
    reasons = {
        "no worker can run 1 queued job": [easy, target(1, 1_000)],
        "estimated latency of 8 queued jobs (8 s) is over the target of 5 s": [
            easy, target(8, 1_000, hosts=[2])
        ],
        "other jobs occupy the workers that could run its jobs": [
            Target("f", 0, 0, 9, 9 * 600_000, {1: 1}, {}), easy
        ],
    }  # fmt: skip
    for reason, targets in reasons.items():
        found = verdict(known, *targets, hosts=[*hosts, Host(2)])
        assert 0 <= found.latency_ms <= 5_000
        assert (found.reason, found.start) == (reason, found.wanted)
        assert found.wanted
    unsure = target(5, 1_000)._replace(pools={}, guesses=frozenset({"p"}))
    first = "it might run the queued jobs: its first worker will show"
    assert verdict(PoolNow(pool()), unsure).reason == first


def test_those_that_leave_still_take_their_place() -> None:
    much = target(1_000, 10_000)
    assert verdict(PoolNow(pool(max_workers=3), serving=1), much).start == 2
    assert verdict(PoolNow(pool(max_workers=3), serving=1, leaving=1), much).start == 1
    assert verdict(PoolNow(pool(max_workers=3), serving=1, leaving=5), much).start == 0


def test_the_minimum_is_kept_without_work() -> None:
    found = verdict(PoolNow(pool(min_workers=3), serving=1))
    assert (found.start, found.reason) == (2, "min_workers is 3")


def test_the_better_pool_goes_first_and_the_next_sees_it() -> None:
    cheap = pool(name="cheap", hourly_price=1, max_workers=2)
    dear = pool(name="dear", hourly_price=9)
    first = pool(name="first", hourly_price=99, priority=1, max_workers=1)
    work = target(200, 100)._replace(pools={"cheap": 1, "dear": 1, "first": 1})
    pools = tuple(PoolNow(one) for one in (dear, cheap, first))
    found = size(Fleet(NOW, (work,), (), pools))
    assert [(v.pool, v.start) for v in found] == [("first", 1), ("cheap", 2), ("dear", 1)]


def test_long_waits_double_a_pool_until_every_job_has_a_place() -> None:
    late = Target("", 40, 40, 2, 0, {1: 1}, {"p": 1}, waited_ms=6_000)
    hosts = (Host(1, "p", 2),)

    def start(target: Target, serving: int, starting: int = 0) -> int:
        one = PoolNow(pool(), known=True, serving=serving, starting=starting)
        return verdict(one, target, hosts=hosts).start

    assert start(late, serving=2) == 2
    assert start(late, serving=2, starting=1) == 0, "one of one is on its way"
    assert start(late._replace(waited_ms=5_000), serving=2) == 0
    assert start(late._replace(queued=1), serving=2) == 1
    assert start(late._replace(queued=1, running=1), serving=2) == 0, "a place is free for it"


def test_what_if_answers_from_the_same_function() -> None:
    now = fleet(
        PoolNow(pool(), serving=1), target(200, 100, hosts=[1, 7]),
        hosts=[Host(1, "p"), Host(7)],
    )  # fmt: skip
    assert size(now)[0].start == 2
    assert size(what_if(now, target_ms=60_000))[0].start == 0
    more = size(what_if(now, workers=20))[0]
    assert (more.start, more.slots, more.latency_ms) == (0, 21, 953)
    none = size(what_if(now, workers=0))[0]
    assert (none.start, none.slots, none.latency_ms) == (3, 1, 20_000)


# Properties

works = st.builds(
    lambda queued, each, running, left: (queued, each, running, left * min(running, 1)),
    st.integers(0, 300), st.integers(1, 120_000), st.integers(0, 20), st.integers(0, 600_000),
)  # fmt: skip


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Several targets, hosts and pools, in any relation."""
    hosts = [Host(n, "", draw(st.integers(1, 4))) for n in range(draw(st.integers(0, 4)))]
    names = ["a", "b"][: draw(st.integers(1, 2))]
    pools: list[PoolNow] = []
    targets: list[Target] = []
    for name in names:
        low = draw(st.integers(0, 3))
        described = pool(
            name=name, min_workers=low,
            max_workers=draw(st.integers(low, 40)), target_latency_ms=draw(st.integers(1, 60_000)),
            max_ms_per_month=draw(st.sampled_from([0, 10**5, 10**6, 10**8])),
            start_cooldown_ms=draw(st.sampled_from([0, 10_000])), enabled=draw(st.booleans()),
        )  # fmt: skip
        online = draw(st.integers(0, 5))
        hosts += [Host(100 * len(pools) + 100, name, online)] if online else []
        pools.append(
            PoolNow(
                described, serving=online, leaving=draw(st.integers(0, 3)),
                used_ms=draw(st.integers(0, 2 * 10**6)),
                started_at=NOW - draw(st.integers(0, 20_000)),
                failures=draw(st.sampled_from([0, 0, 2])),
                next_at=draw(st.sampled_from([0, NOW + 5])),
                longest_ms=draw(st.integers(0, 60_000)), known=True,
            )
        )  # fmt: skip
    for n in range(draw(st.integers(0, 4))):
        queued, each, running, left = draw(works)
        able = draw(st.dictionaries(st.sampled_from(names), st.integers(1, 6)))
        others = st.sampled_from([h.id for h in hosts if not h.pool] or [0])
        reach = draw(st.dictionaries(others, st.integers(1, 6)))
        reach |= {h.id: able[h.pool] for h in hosts if h.pool in able}
        targets.append(Target(f"t{n}", queued, queued * each, running, left, reach, able))
    return Fleet(NOW, tuple(targets), tuple(hosts), tuple(pools))


def apply(before: Fleet) -> Fleet:
    """The fleet with what was decided on its way."""
    hosts, targets, pools = list(before.hosts), list(before.targets), []
    decided = {v.pool: v.start for v in size(before)}
    for number, one in enumerate(before.pools):
        start = decided[one.pool.name]
        if start:
            hosts.append(Host(10_000 + number, one.pool.name, start))
            targets = [target_with(one, hosts[-1]) for one in targets]
        pools.append(one._replace(serving=one.serving + start, starting=one.starting + start))
    return before._replace(hosts=tuple(hosts), targets=tuple(targets), pools=tuple(pools))


@given(fleets())
def test_no_limit_is_ever_passed(before: Fleet) -> None:
    by_name = {one.pool.name: one for one in before.pools}
    for found in size(before):
        one = by_name[found.pool]
        assert 0 <= found.start <= max(found.wanted, 0)
        if found.start:
            assert one.pool.enabled
            assert one.serving + one.leaving + found.start <= one.pool.max_workers
            assert found.start <= affordable_workers(one)
            assert one.next_at <= NOW
            assert one.started_at + one.pool.start_cooldown_ms <= NOW
            assert found.start == 1 or not one.failures


@given(fleets())
def test_what_was_decided_is_not_decided_again(before: Fleet) -> None:
    """Asked again with those on their way, nobody wants more than limits kept back."""
    wanted = {v.pool: v.wanted - v.start for v in size(before)}
    after = size(apply(before))
    assert sum(v.start for v in after if wanted[v.pool] == 0 and _alone(before)) == 0


def _alone(before: Fleet) -> bool:
    return len(before.pools) == 1


@given(works, st.integers(1, 4), st.integers(1, 60_000))
def test_one_less_would_not_do(work: tuple[int, int, int, int], room: int, target_ms: int) -> None:
    queued, each, running, left = work
    hosts = [Host(n) for n in range(running)]
    one = PoolNow(pool(target_latency_ms=target_ms, max_workers=10**4))
    mine = target(queued, each, range(running), left, running, room)
    found = verdict(one, mine, hosts=hosts)
    jobs, needed = queued + running, -(-mine.work_ms // target_ms)
    if found.start:
        assert queued
        assert found.after_ms <= target_ms or found.slots + found.start * room >= jobs
        fewer = found.slots + (found.start - 1) * room
        assert fewer < jobs
        assert latency_ms(mine.work_ms, fewer) in (NEVER, *_over(mine.work_ms, fewer, target_ms))
    elif queued:
        assert found.slots >= min(needed, jobs)


def _over(work_ms: int, slots: int, target_ms: int) -> list[int]:
    latency = latency_ms(work_ms, slots)
    return [latency] if slots and work_ms > slots * target_ms else []


@given(works, st.integers(1, 50), st.integers(0, 60_000))
def test_more_work_never_means_fewer_workers(
    work: tuple[int, int, int, int], more: int, left: int
) -> None:
    queued, each, running, _ = work
    hosts = [Host(n) for n in range(running)]
    less = target(queued, each, hosts=range(running), left_ms=left, running=running)
    bigger = target(queued + more, each, hosts=range(running), left_ms=left, running=running)
    one = PoolNow(pool())
    assert verdict(one, bigger, hosts=hosts).wanted >= verdict(one, less, hosts=hosts).wanted
