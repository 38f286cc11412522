"""Waiting for many jobs, and the errors of those who wait."""

import asyncio
import pickle
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import windlass
from tests.embedded import functions
from windlass.client.service import Service
from windlass.domain.values.quantities import DurationLike
from windlass.messages.jobs import WaitReply, WaitRequest

SLEEP = windlass.named("shell").job(argv=["sleep", "1000"])
NEVER = windlass.named("shell").options(requires="memory>=8TiB").job(argv=["true"])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windlass.Client]:
    folder = tmp_path_factory.mktemp("waiting")
    with windlass.Client.embedded(folder / "jobs.db", workers=2) as made:
        yield made


def test_gather_returns_results_in_the_order_given(client: windlass.Client) -> None:
    jobs = client.map(functions.double, range(200))
    assert windlass.gather(*jobs, jobs[3], timeout=60) == [*range(0, 400, 2), 6]
    assert windlass.gather() == []


def test_gather_raises_the_first_failure_at_once(
    client: windlass.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []  # until when: a server that is told "all" answers after 30 s

    async def wait_some(self: Service, request: WaitRequest) -> WaitReply:
        asked.append(request.until)
        return await answer(self, request)

    answer = Service.wait_some
    monkeypatch.setattr(Service, "wait_some", wait_some)
    endless = client.submit(SLEEP)
    good, bad = client.submit(functions.add, 1, 2), client.submit(functions.fail, "no luck")
    with pytest.raises(windlass.JobFailed, match="no luck"):
        windlass.gather(endless, good, bad, timeout=60)
    assert set(asked) == {"failure"}
    total, error = windlass.gather(good, bad, timeout=60, return_exceptions=True)
    assert (total, repr(error)) == (3, f"JobFailed(job {bad.id} failed: ValueError: no luck)")
    endless.cancel()


def test_jobs_are_yielded_as_they_end(client: windlass.Client) -> None:
    slow, fast = client.submit(SLEEP), client.submit(functions.add, 1, 2)
    ended = []
    for job in windlass.as_completed([slow, fast, fast], timeout=60):
        ended.append(job)
        if job is fast:
            assert job.result(timeout=0) == 3
            slow.cancel()
    assert ended[-1] is slow
    assert len(ended) == 3
    assert list(windlass.as_completed([])) == []


def test_async_code_waits_in_its_own_loop(client: windlass.Client) -> None:
    async def scenario() -> tuple[list[int], set[int]]:
        asynchronous = client.as_async()
        jobs = await asynchronous.map(functions.double, [1, 2, 3])
        ended = {job.id async for job in windlass.as_completed_async(jobs, timeout=60)}
        assert ended == {job.id for job in jobs}
        return await windlass.gather_async(*jobs, timeout=60), ended

    results, _ = asyncio.run(scenario())
    assert results == [2, 4, 6]


def test_whoever_waited_too_long_is_told_for_what_and_why(client: windlass.Client) -> None:
    job = client.submit(NEVER)
    with pytest.raises(windlass.ResultTimeout, match=rf"job {job.id} has not ended after 0.01 s: "):
        job.result(timeout=0.01)
    with pytest.raises(TimeoutError, match="memory") as late:
        windlass.gather(job, client.submit(functions.add, 1, 2), timeout=0.01)
    assert isinstance(late.value, windlass.ResultTimeout)
    assert job.id in late.value.jobs
    with pytest.raises(windlass.ResultTimeout, match="1 of 1 job has not ended"):
        list(windlass.as_completed([job], timeout=0.01))
    with client.workflow("stuck") as stuck:
        part = stuck.submit(NEVER)
    expected = rf"workflow {stuck.id} has not ended after 0.01 s; job {part.id} has not: .*memory"
    with pytest.raises(windlass.ResultTimeout, match=expected):
        stuck.complete(timeout=0.01)
    stuck.cancel()
    job.cancel()


def test_times_to_wait_have_every_form_of_a_duration(client: windlass.Client) -> None:
    job = client.submit(NEVER)
    with client.workflow("stuck") as stuck:
        stuck.submit(NEVER)
    waits: list[Callable[[DurationLike], object]] = [
        job.wait,
        lambda timeout: job.result(timeout=timeout),
        lambda timeout: windlass.gather(job, timeout=timeout),
        lambda timeout: list(windlass.as_completed([job], timeout=timeout)),
        lambda timeout: stuck.complete(timeout=timeout),
    ]
    for wait in waits:
        for timeout in ("20ms", timedelta(milliseconds=20)):
            with pytest.raises(windlass.WaitTimeout, match=r"not ended after 0.02 s"):
                wait(timeout)
        with pytest.raises(windlass.InvalidInput, match="a duration such as 90"):
            wait("soon")
    stuck.cancel()
    job.cancel()


def test_a_job_that_was_aborted_says_what_failed_before_it(client: windlass.Client) -> None:
    allowed = client.submit(functions.fail.options(allow_failure=True), "harmless")
    broken = client.submit(functions.fail, "broken")
    chord = client.submit(functions.double.options(after=[allowed, broken]), 1)
    last = client.submit(functions.double, chord.output)
    for job in (chord, last):
        with pytest.raises(
            windlass.JobFailed, match=r"Dependency .*; job .* failed: .*broken"
        ) as told:
            job.result(timeout=60)
        assert told.value.job.state == "aborted"
        assert told.value.origin is not None
        assert told.value.origin.id == broken.id
        assert told.value.exception_type == "ValueError"
        assert "in fail" in (told.value.traceback or "")
        short = f"JobFailed(job {job.id} aborted: job {broken.id} failed: ValueError: broken)"
        assert repr(told.value) == short
    with pytest.raises(windlass.JobFailed, match="broken"):
        windlass.gather(last, timeout=60)
    handles = [client.job(last.id) for _ in range(30)]
    again = windlass.gather(*handles, timeout=60, return_exceptions=True)
    assert {repr(one) for one in again[:20]} == {short}  # Each costs a request or two.
    assert str(again[20]) == f"job {last.id} aborted: Dependency {chord.id} aborted"


def test_gather_says_how_to_give_it_a_list(client: windlass.Client) -> None:
    jobs: Any = client.map(functions.add, [1, 2], [3, 4])
    with pytest.raises(windlass.InvalidInput, match=r"got list; .* as gather\(\*jobs\)"):
        windlass.gather(jobs, timeout=60)
    with pytest.raises(windlass.InvalidInput, match="got int"):
        asyncio.run(windlass.gather_async(jobs[0].id))
    with pytest.raises(windlass.InvalidInput, match=r"handles of jobs.*got int"):
        list(windlass.as_completed([jobs[0].id]))
    with pytest.raises(windlass.InvalidInput, match=r"got JobHandle; use gather$"):
        asyncio.run(windlass.gather_async(jobs[0]))
    later: Any = jobs[0].asynchronous
    with pytest.raises(windlass.InvalidInput, match=r"got AsyncJob; use as_completed_async$"):
        list(windlass.as_completed([later]))
    name: Any = "7/cancel"
    with pytest.raises(windlass.InvalidInput, match="the id of a job, a number, got 7/cancel"):
        client.job(name)


def test_a_failed_workflow_names_its_failed_jobs(client: windlass.Client) -> None:
    with client.workflow("broken") as broken:
        broken.submit(functions.add, 1, 2)
        bad = broken.submit(functions.fail.options(name="bad"), "no luck")
    with pytest.raises(windlass.WorkflowFailed) as failed:
        broken.complete(timeout=60)
    assert f"job {bad.id} bad failed: ValueError: no luck" in str(failed.value)
    assert [job.id for job in failed.value.jobs] == [bad.id]


def test_handles_of_two_clients_are_not_waited_for_together(client: windlass.Client) -> None:
    other = windlass.Client("http://127.0.0.1:9", "x")
    with pytest.raises(windlass.InvalidInput, match="those of one client"):
        windlass.gather(client.job(1), other.job(1))


def test_an_exception_arrives_with_its_traceback_and_cause(client: windlass.Client) -> None:
    with pytest.raises(windlass.JobFailed) as met:
        client.submit(functions.fail_deeply, 1).result(timeout=60)
    failed = met.value
    assert failed.exception_type == "ValueError"
    assert failed.exception_message == "x" * 2_000
    assert "in fail_deeply" in (failed.traceback or "")
    assert failed.cause is not None
    assert (failed.cause.type, failed.cause.message) == ("ValueError", "bottom � ?")
    shown = "".join(traceback.format_exception(failed))
    assert shown.index("bottom") < shown.index("x" * 100) < shown.rindex("JobFailed")
    assert len(repr(failed)) < 2_200
    copy = pickle.loads(pickle.dumps(failed))
    assert (copy.exception, copy.message) == (failed.exception, failed.message)
    with pytest.raises(windlass.JobFailed) as deep:
        client.submit(functions.fail_deeply, 30).result(timeout=60)
    assert len(str(deep.value.exception)) < 70_000
    with pytest.raises(windlass.JobFailed) as other:
        client.submit("shell", argv=["false"]).result(timeout=60)
    assert (other.value.exception, other.value.traceback) == (None, None)
