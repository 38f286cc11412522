"""`Views`: lists in every order, filters by time, text and failure, and bounded counts."""

import itertools
from functools import partial
from typing import Any

import msgspec
import pytest

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import (
    COMPLETED,
    FAILED,
    RUNNING,
    event,
    grant,
    job_end,
    new_job,
    ticket,
)
from tests.store.conformance.test_views import EVERY_STATE, SHAPES, fill
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import TRANSITIONS, State
from windlass.domain.rows.views import JobCount, JobFilter, JobSort, Place
from windlass.domain.values.errors import InvalidInput
from windlass.store import job_lists
from windlass.store.job_lists import SKEW_MS
from windlass.store.sql.transaction import ReadTx, WriteTx

HOUR = 3_600_000
START = 1_000 * HOUR


def spec(**given: Any) -> bytes:
    return msgspec.json.encode({"task": "shell", **given})


def listed(
    store: Driver, sort: JobSort = JobSort.NEWEST, size: int = 100, **wanted: Any
) -> list[int]:
    """Returns the ids of all pages."""
    found: list[int] = []
    place: Place | None = None
    while True:
        where = place

        def read(tx: Any, after: Place | None = where) -> Any:
            return tx.views.sorted_jobs(JobFilter(**wanted), sort, after, size)

        page = store.read(read)
        found += [view.facts.id for view in page.jobs]
        place = page.next
        if place is None:
            return found


async def hourly(tx: WriteTx) -> None:
    """Twelve jobs, one an hour; the odd ones have ended half an hour later, 3 and 7 badly."""
    bodies = {str(n): msgspec.json.encode(shape) for n, shape in enumerate(SHAPES)}
    await tx.catalog.intern_shapes(bodies)
    rows = [
        new_job(n, shape=1 + n % 3, created_at=START + n * HOUR, limit=None)._replace(
            spec=spec(name=f"build-{n}", args={"argv": ["make", f"target{n}"]})
        )
        for n in range(1, 13)
    ]
    await tx.jobs.insert(rows)
    await tx.places.add_ready([ticket(n, shape=1 + n % 3, rank=100 - n) for n in range(2, 13, 2)])
    for n in (11, 9, 7, 5, 3, 1):  # the newest ends first
        state = FAILED if n in (3, 7) else COMPLETED
        failure = {3: FailureClass.TIMEOUT.code, 7: FailureClass.EXECUTION.code}.get(n, 0)
        message = "Ran out of Time" if n == 3 else None
        at = START + 13 * HOUR + (12 - n) * HOUR
        end = job_end(n, state=state, finished_at=at, failure=failure, message=message)
        await tx.jobs.end([end])
        await tx.log.append([event(n, source=RUNNING, to=state, at=at)])


def test_every_order_pages_through_the_same_jobs(store: Driver, monkeypatch: Any) -> None:
    store.transact(hourly)
    everything = list(range(1, 13))
    for chunk in (3, 500):
        monkeypatch.setattr(job_lists, "CHUNK", chunk)
        for size in (2, 100):
            assert listed(store, JobSort.NEWEST, size) == everything[::-1]
            assert listed(store, JobSort.OLDEST, size) == everything
            assert listed(store, JobSort.OLDEST, size, states=(FAILED,)) == [3, 7]
            assert listed(store, JobSort.PRIORITY, size) == [12, 10, 8, 6, 4, 2]
            assert listed(store, JobSort.FINISHED, size) == [1, 3, 5, 7, 9, 11]
            assert listed(store, JobSort.FINISHED, size, states=(FAILED,)) == [3, 7]
            assert listed(store, JobSort.PRIORITY, size, queue="batch") == [10, 4]


def test_oldest_first_covers_every_place(store: Driver) -> None:
    store.transact(fill)
    assert listed(store, JobSort.OLDEST, 1) == sorted(EVERY_STATE)
    for job, state in EVERY_STATE.items():
        same = sorted(n for n, other in EVERY_STATE.items() if other == state)
        assert listed(store, JobSort.OLDEST, 1, states=(state,)) == same, job
    odd = [n for n in sorted(EVERY_STATE) if n % 2]
    assert listed(store, JobSort.OLDEST, 2, workflow=1) == odd


QUEUED, RETRYING, BLOCKED = State.QUEUED.code, State.RETRYING.code, State.BLOCKED.code
CANCELED = State.CANCELED.code
STATES = (
    (), (COMPLETED,), (FAILED,), (COMPLETED, CANCELED), (COMPLETED, QUEUED), (QUEUED,),
    (RUNNING, BLOCKED, RETRYING), (FAILED, RUNNING, COMPLETED),
)  # fmt: skip


@pytest.mark.parametrize("states", STATES)
def test_pages_hold_what_matches_however_few_rows_are_read_at_once(
    store: Driver, monkeypatch: Any, states: tuple[int, ...]
) -> None:
    monkeypatch.setattr(job_lists, "MIN_EXAMINED", 1)
    monkeypatch.setattr(job_lists, "WIDEST", 3)
    monkeypatch.setattr(job_lists, "SCAN", 4)
    monkeypatch.setattr(job_lists, "SEARCHED", 3)
    store.transact(fill)
    shapes = {job: SHAPES[job % 3] for job in EVERY_STATE}
    texts: list[tuple[dict[str, str], set[int]]] = [
        ({}, set(EVERY_STATE)), ({"text": "N1"}, {5}), ({"pattern": "^n1$|^shell$"}, {5, 6}),
    ]  # fmt: skip
    for queue, (text, having) in itertools.product((None, "live", "batch"), texts):
        found = [
            job
            for job, state in sorted(EVERY_STATE.items())
            if job in having and (not states or state in states)
            and queue in (None, shapes[job].queue)
        ]  # fmt: skip
        asked: dict[str, Any] = {"states": states, "queue": queue, **text}
        assert listed(store, JobSort.OLDEST, 2, **asked) == found, asked
        assert listed(store, JobSort.NEWEST, 2, **asked) == found[::-1], asked
        assert listed(store, JobSort.NEWEST, 1, **asked) == found[::-1], asked


def test_jobs_that_run_longest_come_first(store: Driver) -> None:
    async def run(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(n) for n in range(1, 5)])
        await tx.places.add_ready([ticket(n) for n in range(1, 5)])
        for n, at in ((1, 300), (2, 100), (3, 200), (4, 100)):
            await tx.leases.grant([grant(ticket(n), worker=1)], RUNNING, at, 10)

    store.transact(run)
    assert listed(store, JobSort.RUNNING, 1) == [2, 4, 3, 1]
    assert listed(store, JobSort.RUNNING, 3, states=(RUNNING,)) == [2, 4, 3, 1]


def test_an_order_that_cannot_show_the_states_is_refused(store: Driver) -> None:
    store.transact(hourly)
    for sort, state in (
        (JobSort.RUNNING, FAILED), (JobSort.PRIORITY, RUNNING), (JobSort.FINISHED, RUNNING),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match="newest or oldest"):
            listed(store, sort, states=(state,))


def test_times_of_creation_and_end_select_jobs(store: Driver, monkeypatch: Any) -> None:
    store.transact(hourly)
    for chunk in (2, 500):  # with a small one, ids are found by halving
        monkeypatch.setattr(job_lists, "CHUNK", chunk)
        since, until = START + 4 * HOUR, START + 8 * HOUR
        for sort in (JobSort.NEWEST, JobSort.OLDEST):
            found = listed(store, sort, created_from=since, created_to=until)
            assert sorted(found) == [4, 5, 6, 7]
        ended = {"finished_from": START + 16 * HOUR, "finished_to": START + 20 * HOUR}
        assert listed(store, JobSort.NEWEST, **ended) == [9, 7]
        assert listed(store, JobSort.FINISHED, **ended) == [7, 9]
        assert listed(store, created_to=START) == []
        assert listed(store, finished_from=START + 90 * HOUR) == []
        assert listed(store, states=(RUNNING,), finished_from=0) == []


def test_ids_out_of_order_within_the_skew_are_found(store: Driver, monkeypatch: Any) -> None:
    async def late(tx: WriteTx) -> None:
        times = [START + n * HOUR for n in range(1, 30)]
        times[9] += SKEW_MS  # its transaction was slow
        rows = [new_job(n, created_at=at) for n, at in enumerate(times, 1)]
        await tx.jobs.insert(rows)

    monkeypatch.setattr(job_lists, "CHUNK", 2)
    store.transact(late)
    at = START + 10 * HOUR + SKEW_MS
    assert listed(store, created_from=at, created_to=at + 1) == [10]


def test_text_and_patterns_are_found_in_names_commands_and_messages(store: Driver) -> None:
    store.transact(hourly)
    assert listed(store, text="BUILD-1") == [12, 11, 10, 1]
    assert listed(store, text="target7") == [7]
    assert listed(store, text="out of time") == [3]
    assert listed(store, text="12") == [12]
    assert listed(store, text="2") == [12, 2]  # the name of 12, the number of 2
    assert listed(store, pattern=r"^make target(3|4)$") == [4, 3]
    assert listed(store, pattern=r"(?i)^ran out") == [3]
    assert listed(store, pattern=r"^target") == []
    assert listed(store, JobSort.OLDEST, text="build-1", pattern="0$") == [10]


def test_jobs_are_found_by_id_unless_another_filter_leaves_them_out(store: Driver) -> None:
    store.transact(hourly)
    assert listed(store, ids=(2, 3, 7, 99)) == [7, 3, 2]
    assert listed(store, JobSort.OLDEST, 1, ids=(2, 3, 7)) == [2, 3, 7]
    assert listed(store, JobSort.FINISHED, ids=(2, 3, 7)) == [3, 7]  # the order of their ends
    assert listed(store, JobSort.PRIORITY, ids=(2, 3, 4)) == [4, 2]
    assert listed(store, ids=(2, 3, 7), states=(FAILED,)) == [7, 3]
    assert listed(store, ids=(3, 4), namespaces=("nobody",)) == []
    assert listed(store, ids=(3, 4), workflow=5) == []
    assert store.read(partial(_count, wanted=JobFilter(ids=(2, 3, 99)))) == JobCount(2, 2, True)


def test_failure_classes_select_jobs(store: Driver) -> None:
    store.transact(hourly)
    assert listed(store, failures=(FailureClass.TIMEOUT.code,)) == [3]
    both = FailureClass.TIMEOUT.code, FailureClass.EXECUTION.code
    assert listed(store, failures=both) == [7, 3]
    assert listed(store, failures=both, states=(COMPLETED,)) == []


def test_a_count_is_exact_where_it_can_look_at_all(store: Driver) -> None:
    store.transact(fill)
    filters: list[dict[str, Any]] = [
        {}, {"queue": "live"}, {"namespaces": ("team",)}, {"workflow": 1}, {"text": "n1"},
        {"labels": (("a", "1"),)}, {"dead": True},
    ]  # fmt: skip
    filters += [{"states": (state,), "task": "shell"} for state in set(EVERY_STATE.values())]
    for wanted in filters:
        sought = JobFilter(**wanted)
        counted = store.read(partial(_count, wanted=sought))
        assert counted.is_whole
        assert counted.found == len(listed(store, **wanted)), wanted


async def _count(tx: ReadTx, wanted: JobFilter) -> JobCount:
    return await tx.views.count_jobs(wanted)


def test_a_count_beyond_the_bound_says_so_and_estimates(store: Driver, monkeypatch: Any) -> None:
    monkeypatch.setattr(job_lists, "COUNTED", 4)
    monkeypatch.setattr(job_lists, "SCAN", 4)
    monkeypatch.setattr(job_lists, "CHUNK", 2)
    store.transact(hourly)
    everything = store.read(lambda tx: tx.views.count_jobs(JobFilter()))
    assert everything == (4, 4, False, 12)
    completed = store.read(lambda tx: tx.views.count_jobs(JobFilter(states=(COMPLETED,))))
    assert completed == (2, 4, False, 6)
    bad = store.read(lambda tx: tx.views.count_jobs(JobFilter(states=(FAILED,))))
    assert bad == (2, 2, True, None)


def test_a_search_says_how_far_it_looked(store: Driver, monkeypatch: Any) -> None:
    monkeypatch.setattr(job_lists, "SEARCHED", 4)
    monkeypatch.setattr(job_lists, "CHUNK", 2)
    store.transact(hourly)
    wanted = JobFilter(text="build-2")
    page = store.read(lambda tx: tx.views.sorted_jobs(wanted, JobSort.NEWEST, None, 10))
    assert (page.jobs, page.next, page.looked) == ([], (0, 9), 4)
    assert listed(store, text="build-2") == [2]


def test_jobs_that_ended_in_any_way_are_listed_by_their_ends(store: Driver) -> None:
    ended = [state for state in State if not TRANSITIONS[state]]

    async def end_all(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(n) for n, _ in enumerate(ended, 1)])
        for n, state in enumerate(ended, 1):
            source = next(f.code if f else 0 for f, to in TRANSITIONS.items() if state in to)
            await tx.jobs.end([job_end(n, state=state.code, finished_at=START + n)])
            await tx.log.append([event(n, source=source, to=state.code, at=START + n)])

    store.transact(end_all)
    assert listed(store, JobSort.FINISHED) == list(range(len(ended), 0, -1))
