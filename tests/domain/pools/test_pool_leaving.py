"""Who leaves a pool, when its budget is spent, and that steady load makes nobody come and go."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.domain.pools.pool_fleets import NOW, SECOND, pool, target
from windlass.domain.pools.scale import Host
from windlass.domain.pools.sizing import (
    Fleet,
    Member,
    PoolNow,
    affordable_workers,
    leavers,
    over_budget,
    reserve_ms,
    size,
)


def test_those_that_idle_leave_the_longest_idle_first_and_the_minimum_stays() -> None:
    one = PoolNow(pool(max_idle_ms=10_000, min_workers=1), serving=4)
    members = [
        Member(1, NOW - 11_000, False), Member(2, None, False), Member(3, NOW - 20_000, False),
        Member(4, NOW - 9_999, False),
    ]  # fmt: skip
    assert leavers(one, members, NOW) == {3: "idle for 20 s", 1: "idle for 11 s"}
    kept = one._replace(pool=replace(one.pool, min_workers=3))
    assert leavers(kept, members, NOW) == {3: "idle for 20 s"}


def test_one_that_could_run_what_waits_stays() -> None:
    one = PoolNow(pool(max_idle_ms=0), serving=2)
    members = [Member(1, NOW - 5, True), Member(2, NOW - 5, False)]
    assert list(leavers(one, members, NOW)) == [2]


def test_beyond_the_maximum_only_idle_ones_leave() -> None:
    one = PoolNow(pool(max_workers=1, max_idle_ms=10**6), serving=3)
    members = [Member(1, None, True), Member(2, NOW - 1, True), Member(3, None, True)]
    assert leavers(one, members, NOW) == {2: "max_workers is 1"}


@given(
    st.integers(0, 5), st.integers(0, 10_000),
    st.lists(st.tuples(st.integers(0, 20_000), st.booleans()), max_size=8),
)  # fmt: skip
def test_nobody_with_work_leaves_and_the_minimum_holds(
    low: int, patience: int, idle: list[tuple[int, bool]]
) -> None:
    members = [Member(n, NOW - ms if ms else None, queued) for n, (ms, queued) in enumerate(idle)]
    one = PoolNow(pool(max_idle_ms=patience, min_workers=low), serving=len(members))
    going = leavers(one, members, NOW)
    assert len(members) - len(going) >= min(low, len(members))
    for member in members:
        if member.id in going:
            assert member.idle_since
            assert not member.queued
            assert NOW - member.idle_since >= patience


def test_a_pool_that_ends_sends_all_away_and_so_does_an_empty_budget() -> None:
    members = [Member(1, None, True), Member(2, NOW, False)]
    off = PoolNow(pool(enabled=False), serving=2)
    assert set(leavers(off, members, NOW)) == {1, 2}
    spent = PoolNow(pool(max_ms_per_month=1_000_000), serving=2, used_ms=990_000)
    assert over_budget(spent)
    assert set(leavers(spent, members, NOW)) == {1, 2}


@given(
    st.integers(0, 10**8), st.integers(0, 10**8), st.integers(0, 50), st.integers(0, 50),
    st.integers(0, 3_600_000),
)  # fmt: skip
def test_what_is_started_can_still_end_within_the_budget(
    limit: int, used: int, serving: int, leaving: int, longest: int
) -> None:
    one = PoolNow(
        pool(max_ms_per_month=limit), serving=serving, leaving=leaving, used_ms=used,
        longest_ms=longest,
    )  # fmt: skip
    more = affordable_workers(one)
    if limit and more:
        assert used + (serving + leaving + more) * reserve_ms(one) <= limit
        assert not over_budget(one)


def test_steady_load_does_not_flap() -> None:
    """A job a second, each of ten, on a simulated hour: after a start nobody comes or goes."""
    described = pool(target_latency_ms=30_000, max_idle_ms=60_000)
    running: list[int] = []  # when each will have ended
    queued, workers, changes = 0, [0] * 0, []
    for second in range(3_600):
        now = second * SECOND
        running = [end for end in running if end > now]
        queued += 1
        free = len(workers) - len(running)
        for _ in range(min(free, queued)):
            running.append(now + 10 * SECOND)
            queued -= 1
        hosts = [Host(n, "p") for n in range(len(workers))]
        left = sum(end - now for end in running)
        work = target(queued, 10 * SECOND, range(len(workers)), left, len(running))
        one = PoolNow(described, serving=len(workers), known=True)
        start = size(Fleet(now, (work,), tuple(hosts), (one,)))[0].start
        # Whoever has been free for longest is the first to be sent away.
        idle = [n for n in range(len(workers)) if n >= len(running)]
        workers = [now if n < len(running) else since for n, since in enumerate(workers)]
        members = [Member(n, workers[n], queued > 0) for n in idle if workers[n]]
        going = leavers(one, members, now)
        workers = [since for n, since in enumerate(workers) if n not in going] + [now] * start
        if start or going:
            changes.append((second, start, len(going)))
    settled = [change for change in changes if change[0] > 600]
    assert len(workers) >= 10
    assert sum(start for _, start, _ in settled) <= 1, settled
