"""Several processes on one file: one runs the jobs, all submit and read, another takes over."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import apsw
import pytest

import windlass
from tests.cli.program import Program
from tests.embedded import functions
from tests.embedded.holding_files import leads, violations
from tests.embedded.neighbour import neighbour
from tests.support.running import run
from tests.support.running_server import running_server
from tests.support.waiting import until
from windlass.domain.values.errors import StoreUnavailable
from windlass.messages.sync import Released

PATIENCE_S = 60


def wait_until(client: windlass.Client, what: str, check: Callable[[], bool]) -> None:
    async def look() -> bool:
        return check()

    client.run(until(what, look, PATIENCE_S))


def test_a_guests_submit_wakes_the_holders_worker_and_the_end_reaches_the_guest(
    tmp_path: Path,
) -> None:
    # No loop runs often enough to help, so only the channel can bring the news.
    path = tmp_path / "jobs.db"
    with neighbour(path, workers=2) as holder, neighbour(path, workers=2) as guest:
        assert (holder.ask("leads"), guest.ask("leads")) == (True, False)
        for _ in range(3):
            (job,) = guest.ask("submit 1")
            assert guest.ask(f"wait {job}") == "completed"
        (job,) = holder.ask("submit 1")
        assert guest.ask(f"wait {job}") == "completed"


def test_what_many_processes_submit_at_once_is_neither_lost_nor_doubled(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with windlass.Client.embedded(path, workers=4) as client:
        with neighbour(path, workers=0) as one, neighbour(path, workers=1) as two:
            for process in (one, two):
                process.tell("submit 100")
            own = [client.submit(functions.nothing).id for _ in range(100)]
            many = two.answer() + one.answer() + one.ask("many 300")
            ids = own + many
            assert len(set(ids)) == 600
            for job in ids:
                assert client.job(job).wait(timeout=PATIENCE_S).state == "completed"
        assert run(violations(path)) == []


def test_a_guest_takes_over_when_the_holder_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with neighbour(path, workers=1) as holder, neighbour(path, workers=1) as guest:
        assert holder.ask("close") == "closed"
        (job,) = guest.ask("submit 1")
        assert guest.ask(f"wait {job}") == "completed"
        assert guest.ask("leads") is True


def test_a_guest_takes_over_from_a_killed_holder_and_runs_its_job_again(tmp_path: Path) -> None:
    path, go, seen = tmp_path / "jobs.db", tmp_path / "go", tmp_path / "seen"
    with (
        neighbour(path, workers=1) as holder,
        windlass.Client.embedded(path, workers=1) as guest,
    ):
        assert not leads(path)
        job = guest.submit(functions.wait_for_file, str(go), str(seen))
        wait_until(guest, "the holder runs the job", seen.exists)
        holder.kill()
        wait_until(guest, "the guest leads", lambda: leads(path))
        wait_until(guest, "the second attempt", lambda: seen.read_text().endswith(" 2"))
        first = int(guest.job(job.id).info().attempts[0].number)
        go.touch()
        assert (first, job.result(timeout=PATIENCE_S)) == (1, 2)
        assert run(violations(path)) == []


def test_one_that_only_submits_never_takes_over(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    with neighbour(path, workers=1) as holder, neighbour(path, workers=0) as guest:
        holder.kill()
        (job,) = guest.ask("submit 1")
        assert guest.ask("leads") is False
        with neighbour(path, workers=1) as next_one:
            assert next_one.ask("leads") is True
            assert guest.ask(f"wait {job}") == "completed"


def test_a_lock_of_another_process_is_outlasted(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"

    async def scenario() -> None:
        async with windlass.AsyncClient.embedded(path, workers=0) as client:
            other = apsw.Connection(str(path))
            other.execute("BEGIN IMMEDIATE")
            asyncio.get_running_loop().call_later(0.2, other.execute, "COMMIT")
            job = await asyncio.wait_for(client.submit(functions.nothing), PATIENCE_S)
            assert (await job.info()).state == "queued"
            other.close()

    run(scenario())


def test_a_server_is_refused_on_a_file_that_an_embedded_client_holds(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    with windlass.Client.embedded(path, workers=1):
        program = Program(tmp_path)
        refused = program("up", "--port", "0", "--workers", "0")
        assert refused.returncode != 0
        said = " ".join((refused.stdout + refused.stderr).split())
        assert f"locked by process {os.getpid()} (" in said
        assert "), an embedded client; " in said
        assert "Traceback" not in said


def test_on_a_servers_file_a_client_is_a_guest(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"

    async def scenario() -> None:
        async with (
            running_server(f"sqlite://{path}") as server,
            windlass.AsyncClient.embedded(path, workers=1) as client,
        ):
            worker = await server.worker()
            waiting = asyncio.create_task(worker.sync(want=1, wait_ms=20_000))
            job = await client.submit("shell", argv=["true"])
            (given,) = (await waiting).jobs
            assert given.job == job.id
            assert (await server.show(job.id))["state"] == "running"
            assert (await job.info()).state == "running"

    run(scenario())


def test_a_client_that_stood_in_for_a_server_gives_the_file_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.embedded.node.SERVER_RETURNS_S", 1.0)
    path = tmp_path / "windlass.db"

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            async with running_server(f"sqlite://{path}"):
                opened = windlass.AsyncClient.embedded(path, workers=1)
                client = await stack.enter_async_context(opened)
                await client.submit("shell", argv=["true"])

            async def client_leads() -> bool:
                return leads(path)

            for number in range(2):
                await until("the client takes over", client_leads, PATIENCE_S)
                job = await client.submit("shell", argv=["true"])
                assert (await job.wait(timeout=PATIENCE_S)).state == "completed"
                async with running_server(f"sqlite://{path}") as server:
                    assert not leads(path)
                    worker = await server.worker(f"w{number}")
                    job = await client.submit("shell", argv=["true"])
                    (given,) = (await worker.sync(want=1, wait_ms=20_000)).jobs
                    assert given.job == job.id
                    await worker.sync(released=(Released(given.job, given.attempt),))
            await until("the client takes over", client_leads, PATIENCE_S)
            assert await violations(path) == []

    run(scenario())


def test_two_that_open_a_new_file_at_once_both_can(tmp_path: Path) -> None:
    for number in range(5):
        path = tmp_path / f"{number}.db"
        program = (
            "import sys, windlass\n"
            "with windlass.Client.embedded(sys.argv[1], workers=0) as client:\n"
            "    client.submit('shell', argv=['true'])\n"
        )
        command = [sys.executable, "-c", program, str(path)]
        starting = [subprocess.Popen(command) for _ in range(2)]
        assert [process.wait(PATIENCE_S) for process in starting] == [0, 0]
        with windlass.Client.embedded(path, workers=0) as client:
            assert sorted(job.id for job in client.jobs()) == [1, 2]


def test_a_path_too_long_for_a_socket_works_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 60) / ("e" * 60)
    folder.mkdir(parents=True)
    path = folder / "jobs.db"
    with neighbour(path, workers=1) as holder, neighbour(path, workers=0) as guest:
        assert holder.ask("leads") is True
        (job,) = guest.ask("submit 1")
        assert guest.ask(f"wait {job}") == "completed"


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    path.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreUnavailable, match="not a Windlass database"):
        windlass.Client.embedded(path)
