"""`windlass.Client` and `windlass.AsyncClient` against a running installation."""

from collections.abc import Iterator

import pytest

import windlass
from tests.cli.program import Program
from tests.client.resources import use_all
from tests.support.running import run
from windlass.domain.values.errors import InvalidInput, NotFound, Unreachable

ECHO = windlass.JobSpec(task="shell", args={"argv": ["echo", "hi"]})
FAIL = windlass.JobSpec(task="shell", args={"argv": ["sh", "-c", "exit 3"]})
SLEEP = windlass.JobSpec(task="shell", args={"argv": ["sleep", "1000"]})


@pytest.fixture
def client(up: Program) -> Iterator[windlass.Client]:
    with windlass.Client(data=up.data) as client:
        yield client


def test_submit_wait_result_and_logs(client: windlass.Client) -> None:
    job = client.submit("shell", argv=["echo", "hi"])
    assert b"".join(job.logs(follow=True)) == b"hi\n"
    assert job.wait(timeout=60).state == "completed"
    assert job.info().exit_code == 0
    assert b"".join(client.job(job.id).logs()) == b"hi\n"


def test_many_jobs_make_a_workflow(client: windlass.Client) -> None:
    jobs = client.submit_many([ECHO, ECHO, ECHO], workflow="three")
    ended = [job.wait(timeout=60) for job in jobs]
    assert {job.state for job in ended} == {"completed"}
    assert len({job.workflow for job in ended}) == 1
    listed = client.jobs(workflow=ended[0].workflow)
    assert [job.id for job in listed] == [job.id for job in reversed(jobs)]


def test_a_job_without_a_result_raises_and_says_why(client: windlass.Client) -> None:
    job = client.submit(FAIL)
    with pytest.raises(windlass.JobFailed, match=f"job {job.id} failed") as failed:
        job.result(timeout=60)
    assert failed.value.job.exit_code == 3
    again = job.retry()
    assert again.id != job.id
    with pytest.raises(windlass.JobFailed):
        again.result(timeout=60)


def test_cancel_ends_a_running_job(client: windlass.Client) -> None:
    job = client.submit(SLEEP)
    with pytest.raises(TimeoutError):
        job.wait(timeout=0.01)
    assert job.cancel("enough") is True
    ended = job.wait(timeout=60)
    assert (ended.state, ended.reason) == ("canceled", "enough")
    assert job.cancel() is False
    (known,) = client.cancel([job.id]).jobs
    assert known.applied is False


def test_errors_are_our_own(client: windlass.Client) -> None:
    with pytest.raises(NotFound, match="job 999999"):
        client.job(999_999).info()
    with pytest.raises(NotFound):
        list(client.job(999_999).logs())
    with pytest.raises(InvalidInput, match="argv"):
        client.submit("shell", argv=[])
    with windlass.Client("http://127.0.0.1:9", "x") as nobody, pytest.raises(Unreachable):
        nobody.jobs()
    with pytest.raises(InvalidInput, match="server"):
        windlass.Client("http://[::1", "x")


def test_the_asynchronous_client_does_the_same(up: Program) -> None:
    async def scenario() -> None:
        async with windlass.AsyncClient(data=up.data) as client:
            first, second = await client.submit_many([ECHO, FAIL])
            assert (await first.wait(60)).state == "completed"
            assert [chunk async for chunk in first.logs()] == [b"hi\n"]
            with pytest.raises(windlass.JobFailed):
                await second.result(60)
            third = await client.submit(SLEEP)
            assert await third.cancel()
            assert (await third.wait(60)).state == "canceled"
            assert (await client.jobs(limit=1))[0].id == third.id

    run(scenario())


def test_workers_queues_plans_events_and_deletion_over_http(client: windlass.Client) -> None:
    use_all(client)
    assert client.pools.list() == []
    with pytest.raises(windlass.NotFound, match="pool p"):
        client.pools.show("p")
    with pytest.raises(InvalidInput, match=r"unknown query parameter stat; did you mean state\?"):
        client.run(client.asynchronous.transport.get("/api/v1/jobs", {"stat": "failed"}))


def test_many_jobs_are_waited_for_over_http(client: windlass.Client) -> None:
    jobs = client.submit_many([ECHO] * 20)
    assert {job.id for job in windlass.as_completed(jobs, timeout=60)} == {j.id for j in jobs}
    with pytest.raises(windlass.JobFailed):
        windlass.gather(*jobs, client.submit(FAIL), timeout=60)


def test_tokens_are_managed_from_python(client: windlass.Client) -> None:
    server = client.asynchronous.transport.server
    made = client.tokens.create("py-admin", "admin", namespaces=["shop"], expires="1h")
    assert (made.info.role, made.info.namespaces) == ("admin", ("shop",))
    with windlass.Client(server=server, token=made.token) as admin:
        # It manages its own namespace, and learns of no other.
        child = admin.tokens.create("py-submitter", "submitter", namespaces=["shop"])
        assert "py-admin" in {token.name for token in admin.tokens.list()}
        assert all(token.namespaces == ("shop",) for token in admin.tokens.list())
        with pytest.raises(windlass.ServerError, match="cannot grant"):
            admin.tokens.create("wide", "submitter")
        with pytest.raises(NotFound):
            admin.tokens.revoke(client.tokens.create("other", "viewer").info.id)
    with windlass.Client(server=server, token=child.token) as lesser:
        for call in (
            lesser.tokens.list,
            lambda: lesser.tokens.create("x", "admin"),
            lambda: lesser.tokens.rotate(child.info.id),
            lambda: lesser.tokens.revoke(made.info.id),
        ):
            with pytest.raises(windlass.ServerError) as refused:
                call()
            assert refused.value.status == 403
    renewed = client.tokens.rotate("py-submitter", grace="1h")
    assert renewed.token != child.token
    assert client.tokens.revoke("py-admin") is True
    assert client.tokens.revoke(made.info.id) is False
    with (
        windlass.Client(server=server, token=made.token) as revoked,
        pytest.raises(windlass.ServerError) as unknown,
    ):
        revoked.tokens.list()
    assert unknown.value.status == 401
    with pytest.raises(NotFound, match="token nobody"):
        client.tokens.revoke("nobody")
