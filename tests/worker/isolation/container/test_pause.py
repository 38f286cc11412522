"""Rootless podman keeps a process for its next command; a worker ends the one that it started."""

import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.containers import EngineMissingError, RootlessPodman
from tests.support.running import run
from tests.support.waiting import until
from tests.worker.rig import Rig, Witness, play
from windlass.clock import RealClock
from windlass.worker.isolation import container_engine
from windlass.worker.isolation.container_engine import STARTED_BY

ENGINE = {"WINDLASS_CONTAINER_ENGINE": "podman"}


@pytest.fixture
def own_podman() -> Iterator[RootlessPodman]:
    """Podman that nobody has asked for anything yet."""
    try:
        podman = RootlessPodman()
    except EngineMissingError as missing:
        pytest.skip(str(missing))
    yield podman
    podman.close()


def _pause(podman: RootlessPodman) -> Witness | None:
    """The process that podman keeps, if it lives."""
    try:
        return Witness(int((podman.folder / "run/libpod/tmp/pause.pid").read_text()))
    except (FileNotFoundError, ProcessLookupError, AssertionError):
        return None


def _expect_gone(pause: Witness) -> None:
    async def is_gone() -> bool:
        return not pause.alive

    run(until("podman's process has ended", is_gone, 120))


def _run_a_worker(podman: RootlessPodman) -> Witness:
    """Starts a worker, stops it once it knows its engine; returns what podman kept meanwhile."""
    seen: list[Witness] = []

    async def scene(rig: Rig) -> None:
        async def knows_its_engine() -> bool:
            rows = await rig.store.read(lambda tx: tx.workers.all())
            return any("container:engine" in msgspec.json.decode(row.dynamic) for row in rows)

        async with rig.agent_process(user=podman, environ=ENGINE) as agent:
            await until("it has asked podman", knows_its_engine, 120)
            pause = _pause(podman)
            assert pause is not None
            seen.append(pause)
            agent.signal(signal.SIGTERM)
            assert await agent.process.wait() == 0

    play(podman.give(Path(tempfile.mkdtemp(dir=podman.folder))), scene)
    return seen[0]


def test_a_worker_that_ends_leaves_no_process_of_podman(own_podman: RootlessPodman) -> None:
    _expect_gone(_run_a_worker(own_podman))
    assert own_podman.containers() == []  # podman works as before, and starts another


def test_a_worker_leaves_what_it_did_not_start(own_podman: RootlessPodman) -> None:
    own_podman.run("info")
    before = _pause(own_podman)
    assert before is not None
    assert _run_a_worker(own_podman).alive
    assert before.alive


def test_it_stays_while_somebody_else_is_in_its_namespace(
    own_podman: RootlessPodman, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_engine, "ALONE_MS", 200)
    own_podman.env[STARTED_BY] = "/one/worker"
    own_podman.run("info")
    pause = _pause(own_podman)
    assert pause is not None
    inside = own_podman.command(["podman", "unshare", "sh", "-c", "echo in; exec cat"])
    with subprocess.Popen(
        inside, env=own_podman.env, cwd=own_podman.folder,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        run(container_engine.end_pause("/one/worker", RealClock()))
        assert pause.alive
        other.communicate()  # it ends with its input
    run(container_engine.end_pause("/another/worker", RealClock()))
    assert pause.alive
    run(container_engine.end_pause("/one/worker", RealClock()))
    _expect_gone(pause)


def test_nothing_but_podmans_process_is_ended(own_podman: RootlessPodman) -> None:
    """Even if a command of the worker is alone in a user namespace of its own."""
    own_podman.env[STARTED_BY] = "/one/worker"
    alone = own_podman.command(["unshare", "--user", "sh", "-c", "echo in; exec cat"])
    with subprocess.Popen(
        alone, env=own_podman.env, cwd=own_podman.folder,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as command:  # fmt: skip
        assert command.stdout is not None
        assert command.stdout.readline() == b"in\n"
        run(container_engine.end_pause("/one/worker", RealClock()))
        assert command.communicate(b"here", timeout=30)[0] == b"here"
