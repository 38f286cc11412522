"""Sizing where workers take more of one kind of work than of another, by their resources."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from tests.domain.pools.pool_fleets import NOW, pool, target
from windlass.domain.pools.scale import MILLI, Host, Target
from windlass.domain.pools.sizing import Fleet, PoolNow, Verdict, size, spare_flow, what_if

TARGET_MS = 5_000


def verdict(*targets: Target, hosts: Sequence[Host] = ()) -> Verdict:
    one = PoolNow(pool(target_latency_ms=TARGET_MS, max_workers=10**6))
    (found,) = size(Fleet(NOW, targets, tuple(hosts), (one,)))
    return found


def test_a_worker_that_runs_two_at_once_is_worth_two() -> None:
    """Jobs of 4 processors on workers with 8: 200 s of work for 5 s need 40 places."""
    found = verdict(target(200, 1_000, room=2))
    assert (found.start, found.after_ms) == (20, 5_000)
    again = verdict(target(200, 1_000, room=2)._replace(hosts={1: 2}), hosts=[Host(1, "p", 20)])
    assert (again.start, again.slots, again.latency_ms) == (0, 40, 5_000)


def test_large_and_small_jobs_share_workers_by_what_they_take() -> None:
    """100 s of jobs of which a worker takes 2, and 100 s of those of which it takes 8."""
    large, small = target(100, 1_000, room=2), target(100, 1_000, room=8)
    assert verdict(large).start == 10
    assert verdict(small).start == 3  # 2.5
    both = verdict(large, small)
    assert both.start == 13  # 12.5
    assert both.after_ms <= TARGET_MS


def test_another_worker_counts_by_what_it_takes_of_the_work() -> None:
    """One with 16 processors is worth two with 8."""
    large = target(100, 1_000, room=2)._replace(hosts={1: 4})
    small = target(100, 1_000, room=8)._replace(hosts={1: 16})
    found = verdict(large, small, hosts=[Host(1)])
    assert (found.start, found.wanted) == (11, 11)


def test_what_only_others_can_run_takes_its_part_of_them() -> None:
    """A host that is full of large jobs of others has nothing left for small ones."""
    others = Target("o", 0, 0, 2, 600_000, {1: 2}, {})
    small = target(40, 1_000, room=8)._replace(hosts={1: 8})
    assert verdict(others, small, hosts=[Host(1)]).start == 1
    assert verdict(small, hosts=[Host(1)]).start == 0


def test_what_if_goes_by_room() -> None:
    fleet = Fleet(NOW, (target(200, 1_000, room=2),), (), (PoolNow(pool()),))
    (found,) = size(what_if(fleet, workers=5))
    assert (found.slots, found.latency_ms, found.wanted) == (10, 20_000, 15)


rooms = st.integers(1, 12)
works = st.lists(
    st.tuples(st.integers(1, 300), st.integers(1, 60_000), rooms), min_size=1, max_size=5
)


@given(works, st.integers(0, 30))
def test_of_its_own_workers_just_enough_are_started(
    work: list[tuple[int, int, int]], there: int
) -> None:
    """Against the sum in fractions: what each target needs of a worker, all together."""
    hosts = [Host(1, "p", there)] if there else []
    targets = [
        target(queued, each, room=room)._replace(hosts={1: room} if there else {})
        for queued, each, room in work
    ]
    found = verdict(*targets, hosts=hosts)
    needs = sum(
        Fraction(one.needed(TARGET_MS), MILLI * room)
        for one, (_, _, room) in zip(targets, work, strict=True)
    )
    assert found.start == max(ceil(needs) - there, 0)


@st.composite
def shared(draw: st.DrawFn) -> tuple[list[Host], list[Target]]:
    """Hosts of no pool, which take more of some work than of other, for the pool's and others'."""
    hosts = [Host(n, "", draw(st.integers(1, 4))) for n in range(draw(st.integers(0, 4)))]
    targets = []
    for n in range(draw(st.integers(1, 5))):
        queued, each = draw(st.integers(0, 200)), draw(st.integers(1, 60_000))
        running = draw(st.integers(0, 5))
        reach = {host.id: draw(rooms) for host in hosts if draw(st.booleans())}
        able = {"p": draw(rooms)} if draw(st.booleans()) else {}
        left = draw(st.integers(0, 60_000)) * min(running, 1)
        targets.append(Target(f"t{n}", queued, queued * each, running, left, reach, able))
    return hosts, targets


@given(shared(), st.data())
def test_more_room_never_asks_for_more_workers(
    fleet: tuple[list[Host], list[Target]], data: st.DataObject
) -> None:
    """For work that the pool can run; that of others is measured by what it shares with it."""
    hosts, targets = fleet[0], [target for target in fleet[1] if target.pools]
    before = verdict(*targets, hosts=hosts).wanted
    one = data.draw(st.integers(1, 3))
    able = {n: data.draw(rooms) for n in range(len(targets)) if data.draw(st.booleans())}
    more = [
        t._replace(hosts={**t.hosts, 99: able[n]}) if n in able else t
        for n, t in enumerate(targets)
    ]
    assert verdict(*more, hosts=[*hosts, Host(99, "", one)]).wanted <= before


@given(shared())
def test_never_more_than_without_anybody_else(fleet: tuple[list[Host], list[Target]]) -> None:
    hosts, targets = fleet
    helped = [t for t in targets if t.pools and t.queued]
    needs = sum(Fraction(t.needed(TARGET_MS), MILLI * t.pools["p"]) for t in helped)
    found = verdict(*targets, hosts=hosts)
    assert found.wanted <= ceil(needs)
    assert bool(found.wanted) <= bool(helped)


@given(st.data())
def test_hosts_are_shared_out_at_best(data: st.DataObject) -> None:
    """The flow against the theorem behind it: what is lacking is the worst of all subsets."""
    count = data.draw(st.integers(1, 5))
    capacities = {n: data.draw(st.integers(0, 5)) for n in range(data.draw(st.integers(1, 5)))}
    needs = [data.draw(st.integers(0, 12)) for _ in range(count)]
    some = st.dictionaries(st.sampled_from(range(len(capacities))), st.integers(1, 6))
    reach = [data.draw(some) for _ in needs]
    helped = [data.draw(st.booleans()) for _ in needs]

    def unmet(chosen: Sequence[int]) -> int:
        """What is not met of the chosen needs, by the worst of their subsets (a cut)."""
        worst = 0
        for size_ in range(1, len(chosen) + 1):
            for part in combinations(chosen, size_):
                given_ = sum(
                    min(room, sum(reach[n].get(host, 0) for n in part))
                    for host, room in capacities.items()
                )
                worst = max(worst, sum(needs[n] for n in part) - given_)
        return worst

    everyone = list(range(count))
    alone = [n for n in everyone if not helped[n]]
    expected = (sum(needs) - unmet(alone)) - (sum(needs) - unmet(everyone))
    assert spare_flow(needs, reach, capacities, helped) == expected
