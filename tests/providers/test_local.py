"""The local provider: real processes of `windlass worker`, found by any server."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers import orders
from tests.support.waiting import until
from windlass.clock import RealClock
from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import InvalidInput
from windlass.ports.provider import Machine, Order, Owner, ProviderFault
from windlass.providers.local import PATIENCE, LocalProvider, pid_of, workers_below

LIMIT_S = 60


def order(token: str = "build-1") -> Order:
    return orders.order(token, OWNER)


def provider(folder: Path, **options: object) -> LocalProvider:
    return LocalProvider(Pool(name="build", options=options), folder, RealClock())


# Processes are found on the whole machine, where other runs of these tests may be under way.
OWNER = Owner(f"{os.getpid():012x}", "build")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder of its own; what was started in it is killed in the end."""
    yield tmp_path
    for pid in workers_below(tmp_path):
        os.kill(pid, signal.SIGKILL)


def about(machine: Machine, what: str) -> bytes:
    """What the system tells of a process."""
    return Path(f"/proc/{pid_of(machine)}/{what}").read_bytes()


async def gone(made: LocalProvider) -> None:
    """Ask all to end until no process is left."""

    async def check() -> bool:
        machines = await made.find(OWNER)
        await made.terminate(machines)
        return not machines

    await until("the workers end", check, LIMIT_S)


def test_a_token_is_one_process_whoever_asks(place: Path) -> None:
    async def play() -> None:
        first, second = provider(place), provider(place)
        machine = await first.launch(order())
        assert await second.launch(order()) == machine
        assert await second.find(OWNER) == [machine]
        other = await first.launch(order("build-2"))
        assert sorted(await second.find(OWNER)) == sorted([machine, other])
        assert await first.find(Owner(OWNER.installation, "other")) == []
        assert await first.find(Owner("another", "build")) == []
        await gone(second)

    asyncio.run(play())


def test_the_code_is_in_the_environment_and_the_servers_token_is_not(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_TOKEN", "the server's own")

    async def play() -> Machine:
        made = provider(place, env={"EXTRA": "1"})
        machine = await made.launch(order())
        command = about(machine, "cmdline")
        assert b"enrol_secret" not in command
        assert b"--slots\x002\x00--resources\x00cpus=4" in command
        env = about(machine, "environ").split(b"\0")
        assert b"WINDLASS_CODE=enrol_secret" in env
        assert b"EXTRA=1" in env
        assert not any(entry.startswith(b"WINDLASS_TOKEN") for entry in env)
        await gone(made)
        return machine

    asyncio.run(play())


def test_a_worker_imports_what_the_server_can_and_says_what_it_cannot(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "tasks_of_the_shop.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.chdir(place)
    monkeypatch.setenv("WINDLASS_IMPORT", "tasks_of_the_shop")

    async def play() -> str | None:
        made = provider(place / "pools")
        assert made.last_words(OWNER, "build-1") is None
        await made.launch(order())

        async def ended() -> bool:
            return not await made.find(OWNER)

        await until("the worker ends", ended, LIMIT_S)
        return made.last_words(OWNER, "build-1")

    words = asyncio.run(play())
    assert words is not None
    assert words.endswith("got tasks_of_the_shop: No module named 'no_such_module_anywhere'")


def test_one_that_does_not_end_is_killed(place: Path) -> None:
    async def play() -> None:
        made = provider(place)
        machine = await made.launch(order())
        os.kill(pid_of(machine), signal.SIGSTOP)

        async def stands() -> bool:
            return about(machine, "stat").rpartition(b") ")[2].startswith(b"T")

        # Of two signals that wait, the one to end goes first.
        await until("it stands still", stands, LIMIT_S)
        for _ in range(PATIENCE):
            await made.terminate([machine])
        assert await made.find(OWNER) == [machine]
        await made.terminate([machine])

        async def check() -> bool:
            return not await made.find(OWNER)

        await until("it is killed", check, LIMIT_S)

    asyncio.run(play())


def test_a_worker_that_is_starting_a_program_counts_once(place: Path) -> None:
    """Between fork and exec the child shows its parent's command line."""
    program = r"import os, sys; os.fork(); os.write(1, b'%d\n' % os.getpid()); sys.stdin.read()"
    states = (place / "one" / "state", place / "two" / "state")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, "worker", "--state", str(state)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for state in states
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            both = {int(process.stdout.readline()) for _ in range(2)}
            assert process.pid in both
        assert sorted(workers_below(place)) == sorted(process.pid for process in processes)
    finally:
        for process in processes:
            process.communicate()


def test_what_an_ended_worker_left_is_removed(place: Path) -> None:
    async def play() -> None:
        made = provider(place)
        await made.launch(order())
        folder = place / OWNER.installation / OWNER.pool / "build-1"
        assert folder.is_dir()
        await gone(made)
        assert not folder.exists()

    asyncio.run(play())


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProviderFault, match="cannot start a worker in"):
        asyncio.run(provider(tmp_path / "file").launch(order()))


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="one of env, arguments"):
        provider(tmp_path, image="x")
