"""A worker beside the store takes jobs without a server, and can replace one."""

import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import windlass
from tests.cli.program import Program
from tests.embedded import functions
from tests.support.running import run
from tests.support.waiting import until
from windlass.assembly.backend import Backend, ServerOptions, running_without_server
from windlass.assembly.stores import upgrade_store
from windlass.engine.verify import verify

PATIENCE_S = 90

# Everything a job can find out about the processes above it, and about itself.
SPY = """
pid=$$
while [ "$pid" -gt 1 ]; do
    tr '\\0' '\\n' < /proc/$pid/cmdline
    tr '\\0' '\\n' < /proc/$pid/environ
    pid=$(sed 's/.*) //' /proc/$pid/stat | cut -d' ' -f2)
    [ "$pid" = STOP ] && break
done
echo looked
"""


@pytest.fixture
def dsn(postgres_dsn: str) -> str:
    run(upgrade_store(postgres_dsn))
    return postgres_dsn


def start(program: Program, *words: str) -> "subprocess.Popen[str]":
    """Start a command; what it prints is read by nobody."""
    process = program.start(*words)
    assert process.stdout is not None
    return process


def end(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> None:
    if process.poll() is None:
        os.kill(process.pid, number)
    process.wait(PATIENCE_S)
    assert process.stdout is not None
    process.stdout.close()


@asynccontextmanager
async def client_of(dsn: str, blobs: str) -> AsyncIterator[windlass.AsyncClient]:
    async with windlass.AsyncClient.embedded(dsn, blobs=blobs, workers=0) as client:
        yield client


def test_jobs_never_see_where_the_database_is(dsn: str, tmp_path: Path) -> None:
    blobs = f"file://{tmp_path / 'blobs'}"
    program = Program(tmp_path)
    worker = start(program, "worker", "--store", dsn, "--blobs", blobs, "--name", "beside")
    spy = SPY.replace("STOP", str(os.getpid()))  # this test knows the address, of course

    async def scenario() -> None:
        async with client_of(dsn, blobs) as client:
            job = await client.submit("shell", argv=["sh", "-c", spy])
            ended = await job.wait(PATIENCE_S)
            log = b"".join([chunk async for chunk in job.logs(follow=True)]).decode()
            assert (ended.state, log.splitlines()[-1]) == ("completed", "looked")
            assert "--name" in log  # it did see the worker's command line
            assert dsn not in log
            assert dsn.rpartition("/")[0] not in log

    try:
        run(scenario())
    finally:
        end(worker)


def test_the_loops_are_the_servers_while_there_is_one(dsn: str, tmp_path: Path) -> None:
    blobs = f"file://{tmp_path / 'blobs'}"
    program = Program(tmp_path)
    command = ("server", "--store", dsn, "--blobs", blobs, "--listen", "127.0.0.1:0")

    async def scenario() -> None:
        async with running_without_server(ServerOptions(dsn, blobs)) as backend:
            await loops_are(backend, here=True)
            server = start(program, *command)
            try:
                await loops_are(backend, here=False)
            finally:
                end(server, signal.SIGKILL)
            await loops_are(backend, here=True)
            assert await verify(backend.engine.store) == []

    run(scenario())


async def loops_are(backend: Backend, here: bool) -> None:
    async def look() -> bool:
        return backend.loops.running is here

    await until(f"the loops run here: {here}", look, PATIENCE_S)


def test_jobs_flow_on_while_servers_come_and_go(dsn: str, tmp_path: Path) -> None:
    blobs = f"file://{tmp_path / 'blobs'}"
    program = Program(tmp_path)
    worker = start(
        program, "worker", "--store", dsn, "--blobs", blobs, "--name", "beside", "--slots", "4"
    )
    command = ("server", "--store", dsn, "--blobs", blobs, "--listen", "127.0.0.1:0")

    async def scenario() -> None:
        async with client_of(dsn, blobs) as client:
            await run_some(client)
            server = start(program, *command)
            await run_some(client)
            end(server, signal.SIGKILL)
            await run_some(client)

    try:
        run(scenario())
    finally:
        end(worker)


async def run_some(client: windlass.AsyncClient) -> None:
    job = windlass.JobSpec(task="shell", args={"argv": ["true"]})
    for submitted in await client.submit_many([job] * 20):
        assert (await submitted.wait(PATIENCE_S)).state == "completed"


def test_a_program_may_work_on_postgresql_itself(dsn: str, tmp_path: Path) -> None:
    blobs = f"file://{tmp_path / 'blobs'}"
    with windlass.Client.embedded(dsn, blobs=blobs, workers=2) as client:
        job = client.submit(functions.add, 1, 2)
        assert job.result(timeout=PATIENCE_S) == 3
        assert b"".join(job.logs()) == b"adding 1 2\n"
