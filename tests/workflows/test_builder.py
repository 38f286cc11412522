"""`client.workflow(…)`: workflows that programs put together."""

from pathlib import Path

import pytest

import windlass
from tests.embedded import functions
from tests.support.running import run
from tests.support.running_server import running_server
from windlass.client.client import AsyncClient
from windlass.client.service import Service
from windlass.client.transport import Transport
from windlass.domain.values.errors import Conflict, InvalidInput

SHELL = windlass.named("shell")
SLEEP = SHELL.options(name="sleep")


def test_a_workflow_is_submitted_when_its_block_ends(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=2) as client:
        with client.workflow("sums", priority=3, labels={"kind": "test"}) as wf:
            one = wf.submit(functions.add, 1, 2)
            two = wf.submit(functions.fail.options(after=one, allow_failure=True), "allowed")
            last = wf.submit(functions.double.options(after=[one, two], retries=1), 21)
            with pytest.raises(Conflict, match="has no id yet"):
                _ = one.id
            assert client.jobs() == []
        ended = wf.complete(timeout=60)
        assert (ended.id, ended.state, ended.name, ended.jobs) == (wf.id, "completed", "sums", 3)
        assert (ended.priority, ended.labels) == (3, {"kind": "test"})
        assert (one.result(60), last.result(60)) == (3, 42)
        assert two.info().state == "failed"
        shown = last.info()
        assert (shown.name, shown.after, shown.max_retries) == ("double", [one.id, two.id], 1)
        assert isinstance(wf, windlass.Workflow)
        assert {job.name for job in wf.jobs()} == {"add", "fail", "double"}
        assert client.workflow(wf.id).info().state == "completed"


def test_nothing_is_submitted_if_the_block_raises(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        wf = client.workflow("broken")
        with pytest.raises(InvalidInput, match="nobody"), wf:
            wf.submit(SLEEP.options(after=[wf.submit(SHELL, argv=["true"]), "nobody"]))
        assert client.jobs() == []
        with pytest.raises(Conflict, match="inside its with block"):
            wf.submit(SLEEP, argv=["sleep", "1000"])
        with pytest.raises(Conflict, match="submitted once"), wf:
            pass


def test_names_are_made_unique_and_may_be_waited_for(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        before = client.submit(functions.add, 0, 0)
        with client.workflow("names") as wf:
            adds = [wf.submit(functions.add, n, n) for n in range(3)]
            wf.submit(functions.double.options(after=[before, *adds], after_any="add-2"), 1)
            with pytest.raises(InvalidInput, match="unique in its workflow"):
                wf.submit(SLEEP.options(name="add-3"), argv=["true"])
            with pytest.raises(InvalidInput, match="the name of a job of this workflow"):
                wf.submit(SLEEP.options(after="nobody"), argv=["true"])
            with pytest.raises(
                InvalidInput, match=r"unknown job option '?retrys'?; did you mean retries\?"
            ):
                wf.submit(SLEEP.options(retrys=1))  # type: ignore[call-arg, call-overload]
        shown = {job.name: job for job in wf.jobs()}
        assert set(shown) == {"add", "add-2", "add-3", "double"}
        assert shown["double"].after == [before.id, *(job.id for job in adds)]
        with pytest.raises(InvalidInput, match=r"failfast; did you mean fail_fast\?"):
            client.workflow("bad", failfast=True)  # type: ignore[call-overload]


def test_a_workflow_is_canceled_and_retried(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=1) as client:
        with client.workflow("endless") as wf:
            sleeping = wf.submit(SLEEP.job(argv=["sleep", "1000"]))
            wf.submit(functions.add.options(after=sleeping), 1, 1)
        assert wf.cancel("enough") is True
        assert wf.wait(timeout=60).state == "canceled"
        with pytest.raises(windlass.WorkflowFailed, match="canceled"):
            wf.complete(timeout=60)
        again = wf.retry(failed=False)
        assert again.id != wf.id
        assert again.info().supersedes == wf.id
        assert again.cancel() is True
        assert again.wait(timeout=60).state == "canceled"


def test_the_asynchronous_client_does_the_same_over_http() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            token = server.admin.headers["Authorization"].removeprefix("Bearer ")
            service = Service(Transport(server.address, token))
            async with AsyncClient(service=service) as client:
                async with client.workflow("async", fail_fast=True) as wf:
                    first = wf.submit("shell", argv=["true"])
                    wf.submit(SHELL.options(after=first, unblock="manual"), argv=["true"])
                shown = await wf.info()
                assert (shown.state, shown.fail_fast, shown.jobs) == ("queued", True, 2)
                assert shown.counts == {"queued": 1, "blocked": 1}
                assert (await first.info()).workflow == wf.id
                assert await client.workflow(wf.id).cancel()
                assert (await wf.wait(60)).state == "canceled"

    run(scenario())


def test_an_empty_workflow_completes_at_once(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        with client.workflow("nothing") as wf:
            pass
        assert wf.wait(timeout=60).state == "completed"
