"""Submissions that no server took wait in a folder, and arrive once and in order."""

import asyncio
import json
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

import windlass
from tests.client.test_restart import Installation
from tests.support.running import run
from tests.support.running_server import running_server
from tests.support.waiting import until
from windlass.client.errors import ResultTimeout
from windlass.client.handles import AsyncJob
from windlass.client.spool import SpoolFolder
from windlass.domain.access.rights import Role
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, InvalidInput, Unreachable
from windlass.messages.jobs import SubmitRequest

LIMIT_S = 120


def _named(name: str, **more: Any) -> JobSpec:
    return JobSpec(task="shell", args={"argv": ["true"], **more}, name=name)


@contextmanager
def _installed(place: Path) -> Iterator[Installation]:
    with ExitStack() as stack:
        installed = Installation(place, stack)
        installed.start()
        yield installed


def _client(installed: Installation, spool: Path, **options: Any) -> windlass.AsyncClient:
    return windlass.AsyncClient(
        installed.address, data=installed.program.data, spool=spool, reconnect=0.2,
        **{"on_unavailable": "spool", **options},
    )  # fmt: skip


async def _until_delivered(jobs: list[AsyncJob[Any]]) -> list[int]:
    async def are() -> bool:
        try:
            return all(job.id for job in jobs)
        except Conflict as error:
            if error.code != "not_delivered":
                raise
            return False

    await until("the delivery", are, LIMIT_S)
    return [job.id for job in jobs]


async def _names(client: windlass.AsyncClient) -> list[str | None]:
    """The names of all jobs, oldest first."""
    return [job.name for job in sorted(await client.jobs(), key=lambda job: job.id)]


def test_what_no_server_took_is_delivered_once_and_in_order(tmp_path: Path) -> None:
    async def scene(installed: Installation) -> None:
        async with _client(installed, tmp_path / "spool") as client:
            assert (await client.submit(_named("before"))).id
            installed.kill()
            first = await client.submit(_named("first"))
            with pytest.raises(Conflict, match=r"it has no id yet: .* waits in .*spool"):
                _ = first.id
            with pytest.raises(ResultTimeout, match="no server has taken this"):
                await first.wait(0.1)
            with pytest.raises(Unreachable):
                await client.with_options(on_unavailable="raise").submit(_named("lost"))
            async with client.workflow("flow") as flow:
                one = flow.submit(_named("one"))
                two = flow.submit(_named("two"))
            with pytest.raises(Conflict, match="no id yet"):
                _ = flow.id
            async with asyncio.timeout(LIMIT_S):  # It asks no server: others wait.
                last = await client.submit_many([_named("last"), _named("and one")])
            ended = asyncio.ensure_future(first.wait())
            gathered = asyncio.ensure_future(
                windlass.gather_async(one, first, return_exceptions=True)
            )
            completed = asyncio.ensure_future(anext(windlass.as_completed_async([last[0], first])))
            installed.start()
            ids = await _until_delivered([first, one, two, *last])
            assert ids == sorted(ids)
            assert await _names(client) == ["before", "first", "one", "two", "last", "and one"]
            assert [job.name for job in await flow.jobs()] == ["two", "one"]
            assert await first.cancel()
            assert (await asyncio.wait_for(ended, LIMIT_S)).state == "canceled"
            assert await asyncio.wait_for(completed, LIMIT_S) is first
            assert await one.cancel()
            failed = await asyncio.wait_for(gathered, LIMIT_S)
            assert [error.job.id for error in failed] == [one.id, first.id]
            assert type(await client.submit(_named("after"))) is AsyncJob

    with _installed(tmp_path) as installed:
        run(scene(installed))


PROCESS = """
import os, signal, sys, time
from pathlib import Path
import windlass
from windlass.domain.job.job import JobSpec

address, data, spool, name, end = sys.argv[1:]
client = windlass.Client(
    address, data=Path(data), spool=spool, on_unavailable="spool", reconnect=0
)
jobs = [
    client.submit(JobSpec(task="shell", args={"argv": ["true"]}, name=f"{name}{one}"))
    for one in range(10)
]
print("kept", flush=True)
if end == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    try:
        print(*[job.id for job in jobs], flush=True)
        break
    except windlass.Conflict:
        time.sleep(0.05)
"""


def _process(installed: Installation, spool: Path, name: str, end: str) -> "subprocess.Popen[str]":
    words = (installed.address, str(installed.program.data), str(spool), name, end)
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS, *words], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "kept\n"
    return process


def test_processes_share_a_spool_and_their_submissions_outlive_them(tmp_path: Path) -> None:
    spool = tmp_path / "spool"

    async def the_rest(installed: Installation) -> None:
        async with _client(installed, spool) as client:

            async def are_there() -> bool:
                return len(await client.jobs()) >= 30

            await until("all jobs", are_there, LIMIT_S)
            names = await _names(client)
            assert names[:10] == [f"a{one}" for one in range(10)]  # They were kept first.
            for letter in "bc":
                mine = [name for name in names if name and name[0] == letter]
                assert mine == [f"{letter}{one}" for one in range(10)]
            assert len(names) == 30

    with _installed(tmp_path) as installed, ExitStack() as stack:
        installed.kill()
        dead = stack.enter_context(_process(installed, spool, "a", "dies"))
        assert dead.wait(LIMIT_S) == -signal.SIGKILL
        alive = [stack.enter_context(_process(installed, spool, name, "waits")) for name in "bc"]
        try:
            installed.start()
            for process in alive:
                ids = [int(one) for one in process.communicate(timeout=LIMIT_S)[0].split()]
                assert ids == sorted(ids)
                assert len(set(ids)) == 10
        finally:
            for process in alive:
                process.kill()
        run(the_rest(installed))


THREADS = """
import sys, time
from pathlib import Path
from threading import Thread
import windlass
from windlass.domain.job.job import JobSpec

address, data, spool, name, stop = sys.argv[1:]
client = windlass.Client(
    address, data=Path(data), spool=spool, on_unavailable="spool", reconnect=0
)

def submit(thread):
    jobs = []
    while not Path(stop).exists() or not jobs:
        made = JobSpec(task="shell", args={"argv": ["true"]}, name=f"{name}{thread}-{len(jobs)}")
        jobs.append(client.submit(made))
        time.sleep(0.02)
    for job in jobs:
        while True:
            try:
                print(job.id, job.info().name, flush=True)
                break
            except (windlass.Conflict, windlass.Unreachable):
                time.sleep(0.05)

threads = [Thread(target=submit, args=(letter,)) for letter in "xyz"]
for thread in threads:
    thread.start()
print("begun", flush=True)
for thread in threads:
    thread.join()
"""


def test_processes_with_threads_submit_once_and_in_order_while_the_server_comes_and_goes(
    tmp_path: Path,
) -> None:
    spool, stop = tmp_path / "spool", tmp_path / "stop"
    told: dict[str, list[int]] = {}
    with _installed(tmp_path) as installed, ExitStack() as stack:
        words = (installed.address, str(installed.program.data), str(spool))
        processes = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", THREADS, *words, name, str(stop)],
                    stdout=subprocess.PIPE, text=True,
                )
            )
            for name in "abc"
        ]  # fmt: skip
        try:
            for process in processes:
                assert process.stdout is not None
                assert process.stdout.readline() == "begun\n"
            for _ in range(2):
                is_kept = partial(_is_above, spool, _number_kept(spool) + 15)
                installed.kill()
                run(until("some are kept", is_kept, LIMIT_S))
                installed.start()
            stop.touch()
            for process in processes:
                for line in process.communicate(timeout=LIMIT_S)[0].splitlines():
                    number, name = line.split()
                    told.setdefault(name.partition("-")[0], []).append(int(number))
                assert process.returncode == 0
        finally:
            for process in processes:
                process.kill()

        async def are_there_once() -> None:
            async with _client(installed, spool) as client:
                found = await client.jobs(100_000)
            assert sorted(job.id for job in found) == sorted(chain(*told.values()))
            for thread, numbers in told.items():
                names = {job.id: job.name for job in found}
                assert numbers == sorted(numbers)
                assert [names[one] for one in numbers] == [
                    f"{thread}-{place}" for place in range(len(numbers))
                ]

        run(are_there_once())
    assert len(told) == 9


def _number_kept(spool: Path) -> int:
    """How many submissions the spool has ever taken."""
    with closing(sqlite3.connect(spool / "spool.db", timeout=LIMIT_S)) as file:
        return int(file.execute("SELECT ifnull(max(number), 0) FROM entries").fetchone()[0])


async def _is_above(spool: Path, number: int) -> bool:
    return _number_kept(spool) > number


def test_the_next_client_of_the_folder_delivers_for_a_process_that_died(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    with _installed(tmp_path) as installed, ExitStack() as stack:
        installed.kill()
        dead = stack.enter_context(_process(installed, spool, "a", "dies"))
        assert dead.wait(LIMIT_S) == -signal.SIGKILL
        installed.start()

        async def scene() -> None:
            async def are_there() -> bool:
                return len(await other.jobs()) == 10

            async with windlass.AsyncClient(data=installed.program.data) as other:
                assert await other.jobs() == []
                with windlass.Client(installed.address, data=installed.program.data, spool=spool):
                    await until("the jobs", are_there, LIMIT_S)

        run(scene())


def test_a_submission_whose_answer_was_lost_arrives_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running_server() as server:
            host, port = server.address.removeprefix("http://").split(":")
            lost = 0

            async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                nonlocal lost
                up_reader, up_writer = await asyncio.open_connection(host, int(port))
                try:
                    while data := await reader.read(65_536):
                        up_writer.write(data)
                        answer = await up_reader.read(65_536)
                        if b" /api/v1/jobs HTTP" in data and not lost:
                            lost += 1
                            return
                        writer.write(answer)
                finally:
                    writer.close()
                    up_writer.close()

            proxy = await asyncio.start_server(pass_on, "127.0.0.1", 0)
            address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
            token = await server.token(Role.ADMIN)
            async with (
                proxy,
                windlass.AsyncClient(
                    address, token, spool=tmp_path / "spool", on_unavailable="spool", reconnect=0
                ) as client,
            ):
                (job,) = await client.submit_many([_named("once")])
                assert "not delivered" in repr(job)
                ids = await _until_delivered([job])
                assert [one.id for one in await client.jobs()] == ids
                assert lost == 1

    run(scene())


def test_a_submission_goes_behind_what_waits_though_a_server_is_there(tmp_path: Path) -> None:
    async def scene() -> None:
        async with running_server() as server:
            token = await server.token(Role.ADMIN)
            folder = tmp_path / "spool"
            async with windlass.AsyncClient(
                server.address, token, spool=folder, on_unavailable="spool"
            ) as client:
                request = SubmitRequest(jobs=[_named("earlier")], key="k")
                SpoolFolder(folder).add(server.address, msgspec.json.encode(request))
                job = await client.submit(_named("later"))
                (number,) = await _until_delivered([job])
                assert await _names(client) == ["earlier", "later"]
                assert (await client.job(number).info()).name == "later"
                (folder / "spool.db").write_bytes(b"rubbish" * 1_000)
                with pytest.raises(Conflict, match=r"the spool .* cannot be read"):
                    await client.submit(_named("last"))

    run(scene())


def test_a_refused_submission_steps_aside_and_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = tmp_path / "spool"

    async def scene(installed: Installation) -> None:
        async with _client(installed, spool) as client:
            installed.kill()
            first = await client.submit(_named("first"))
            bad = await client.submit(_named("bad", argv=5))
            last = await client.submit(_named("last"))
            installed.start()
            await _until_delivered([first, last])
            with pytest.raises(Conflict, match=r"has no answer: .*argv.*rejected\.jsonl") as told:
                await bad.result()
            assert told.value.code == "rejected"
            assert await _names(client) == ["first", "last"]

    with _installed(tmp_path) as installed, caplog.at_level(logging.WARNING, "windlass.client"):
        run(scene(installed))
    assert "a submission was refused, and is kept in" in caplog.text
    (line,) = (spool / "rejected.jsonl").read_text().splitlines()
    kept = json.loads(line)
    assert kept["request"]["jobs"][0]["name"] == "bad"
    assert "argv" in kept["error"]
    assert spool.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in spool.iterdir()} == {0o600}


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_token_that_is_refused_refuses_no_submission(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with running_server() as server:
            folder = SpoolFolder(tmp_path / "spool")
            folder.add(server.address, b'{"jobs": [{"task": "shell", "args": {}}], "key": "k"}')
            async with windlass.AsyncClient(
                server.address, "wrong", spool=tmp_path / "spool"
            ) as client:
                with pytest.raises(windlass.WindlassError, match="valid token"):
                    await client.submit(_named("direct"))

                async def is_told() -> bool:
                    return "submissions wait in" in caplog.text

                await until("a warning", is_told, LIMIT_S)
            assert folder.first(server.address) is not None

    run(scene())


def test_a_full_spool_raises_what_the_caller_would_have_got(
    tmp_path: Path, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.client.spool.MAX_BYTES", 200_000)
    with windlass.Client(
        nobody, "a token", spool=tmp_path / "spool", on_unavailable="spool"
    ) as client:
        for _ in range(4):
            client.submit(_named("large", text="x" * 30_000))
        with pytest.raises(Unreachable, match=r"the spool .*spool is full .*others wait there"):
            client.submit(_named("large", text="x" * 90_000))
        assert "not delivered" in repr(client.submit(_named("small")))


def test_blocking_code_gets_the_same_handles(tmp_path: Path, nobody: str) -> None:
    with windlass.Client(nobody, "a token", spool=tmp_path / "spool") as client:
        with pytest.raises(Unreachable):
            client.submit(_named("lost"))
        keeping = client.with_options(on_unavailable="spool").with_options(timeout=1)
        job = keeping.submit(_named("one"))
        with keeping.workflow("flow") as flow:
            planned = flow.submit(_named("two"))
        other = run(keeping.as_async().submit(_named("three")))
        for handle in (job, planned, flow, other):
            with pytest.raises(Conflict, match="it has no id yet"):
                _ = handle.id
        with pytest.raises(ResultTimeout, match="no server has taken this"):
            job.result(timeout=0.1)
        with pytest.raises(ResultTimeout, match="no server has taken this"):
            flow.wait(timeout=0.1)
        with pytest.raises(ResultTimeout, match="no server has taken this"):
            windlass.gather(job, planned, timeout=0.1)
        with pytest.raises(ResultTimeout, match="no server has taken this"):
            next(windlass.as_completed([job], timeout=0.1))


def test_what_depends_on_a_job_in_a_spool_is_refused_with_what_to_do(
    tmp_path: Path, nobody: str
) -> None:
    with windlass.Client(
        nobody, "a token", spool=tmp_path / "spool", on_unavailable="spool"
    ) as client:
        job = client.submit(_named("one"))
        after: tuple[Any, ...] = (job,)
        with pytest.raises(Conflict, match=r"it has no id yet: .* go into one `workflow` block"):
            client.submit(JobSpec(task="shell", args={"argv": ["true"]}, after=after))
        with pytest.raises(Conflict, match=r"it has no id yet: .* go into one `workflow` block"):
            client.submit("shell", argv=["echo", job])
        folder = SpoolFolder(tmp_path / "spool")
        assert folder.outcome(1) is None
        with pytest.raises(Unreachable):
            client.workflow(7).add([_named("two")])
        assert "settled" in str(folder.outcome(2))  # Nothing else was kept.


HALF = """
import os, signal, sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA cache_size = 1")
file.execute("PRAGMA cache_spill = 1")
file.execute("BEGIN IMMEDIATE")
file.execute("UPDATE entries SET request = NULL")
for one in range(100):
    file.execute("INSERT INTO entries (server, request) VALUES ('s', zeroblob(5000))")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_write_that_was_cut_off_is_ignored(tmp_path: Path) -> None:
    folder = SpoolFolder(tmp_path / "spool")
    folder.add("s", b"whole")
    file = folder.path / "spool.db"
    before = file.stat().st_size
    done = subprocess.run([sys.executable, "-c", HALF, str(file)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert file.stat().st_size > before  # Some of it did reach the file.
    found = SpoolFolder(folder.path).first("s")
    assert found is not None
    assert found.request == b"whole"
    with file.open("ab") as tail:
        tail.write(b"rubbish" * 100)
    assert SpoolFolder(folder.path).first("s") == found


def test_a_folder_that_others_may_read_is_refused(tmp_path: Path, nobody: str) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(InvalidInput, match="chmod 700"):
        windlass.Client(nobody, "a token", spool=folder)
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="a folder to write to"):
        windlass.Client(nobody, "a token", spool=tmp_path / "file")


def test_files_that_others_put_into_the_folder_are_refused(tmp_path: Path) -> None:
    """While it was open to them: what is in them would be sent with our token."""
    folder = SpoolFolder(tmp_path / "spool").path
    planted = folder / "spool.db-journal"
    planted.symlink_to(tmp_path / "theirs")
    with pytest.raises(InvalidInput, match="whose files all belong to this user"):
        SpoolFolder(folder)
    planted.unlink()
    SpoolFolder(folder)
    if os.geteuid() == 0:
        planted.touch()
        os.chown(planted, 65_534, 65_534)
        with pytest.raises(InvalidInput, match="whose files all belong to this user"):
            SpoolFolder(folder)


def test_a_folder_stays_where_it_was_though_links_and_the_working_directory_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "one")
    monkeypatch.chdir(tmp_path)
    folders = SpoolFolder(link), SpoolFolder(Path("one"))
    link.unlink()
    link.symlink_to(tmp_path / "two")
    monkeypatch.chdir(tmp_path / "two")
    for folder in folders:
        folder.add("s", b"{}")
    assert os.listdir(tmp_path / "two") == []
    found = SpoolFolder(tmp_path / "one").first("s")
    assert found is not None
    assert found.number == 1


@pytest.mark.parametrize("rubbish", [b"rubbish", b'"\xff"', b"{}", b""])
def test_an_entry_that_cannot_be_read_steps_aside(tmp_path: Path, rubbish: bytes) -> None:
    async def scene() -> None:
        async with running_server() as server:
            folder = SpoolFolder(tmp_path / "spool")
            folder.add(server.address, rubbish)
            async with windlass.AsyncClient(
                server.address, await server.token(Role.ADMIN), spool=folder.path,
                on_unavailable="spool",
            ) as client:  # fmt: skip
                job = await client.submit(_named("later"))
                await _until_delivered([job])
                assert await _names(client) == ["later"]
            found = folder.outcome(1)
            assert found is not None
            assert found.refusal
            (line,) = (folder.path / "rejected.jsonl").read_text().splitlines()
            assert json.loads(line)["error"] == found.refusal

    run(scene())


def test_a_spool_needs_a_folder(nobody: str) -> None:
    with pytest.raises(InvalidInput, match='a folder beside on_unavailable="spool"'):
        windlass.Client(nobody, "a token", on_unavailable="spool")
    with (
        windlass.Client(nobody, "a token") as client,
        pytest.raises(InvalidInput, match=r"use Client\(spool=DIR\)"),
    ):
        client.with_options(on_unavailable="spool").submit(_named("one"))


def test_an_embedded_client_has_no_use_for_a_spool() -> None:
    with windlass.Client.embedded(":memory:", workers=0) as client:
        assert client.with_options(on_unavailable="spool").submit(_named("one")).id == 1


def test_a_test_run_neither_keeps_nor_delivers(
    tmp_path: Path, nobody: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDLASS_TESTS")
    folder = SpoolFolder(tmp_path / "spool")
    folder.add(nobody, b"{}")
    with windlass.Client(nobody, "a token", spool=folder.path, on_unavailable="spool") as client:
        with pytest.raises(Conflict, match="would reach a real farm"):
            client.submit(_named("one"))
        client.run(client.asynchronous.open())
    found = folder.first(nobody)
    assert found is not None
    assert found.number == 1
    assert os.listdir(folder.path) == ["spool.db"]
