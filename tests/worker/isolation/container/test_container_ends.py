"""Containers end with their attempt, whatever happens to the agent that started them."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from tests.support.containers import IMAGE, RootlessPodman
from tests.worker.rig import CONFIG, SHORT, AgentProcess, Rig, Witness, guard_of, play, state_of
from windlass.worker.keeper.processes import all_processes, arguments_of, children_of

ENGINE: Final = {"WINDLASS_CONTAINER_ENGINE": "podman"}
SECRET: Final = "hunter2-of-a-running-job"
POLITE: Final = "trap 'echo term; exit 3' TERM; echo up; while :; do sleep 0.1; done"
OPTIONS: Final = {"image": IMAGE, "network": "none"}
# A container hears a signal late on a busy machine.
PATIENT: Final = msgspec.structs.replace(CONFIG, term_grace_ms=25_000)
STUBBORN: Final = "trap '' TERM; echo up; while :; do sleep 0.1; done"


def _folder(podman: RootlessPodman) -> Path:
    return podman.give(Path(tempfile.mkdtemp(dir=podman.folder)))


def _programs() -> Iterator[tuple[int, str]]:
    """Every process with its command line."""
    for seen in all_processes():
        yield seen.pid, b" ".join(arguments_of(seen.pid)).decode(errors="replace")


def _inside(line: str) -> list[Witness]:
    """The processes of a container, whose first one runs this line of shell."""
    return [Witness(pid) for pid, words in list(_programs()) if words.startswith(f"sh -c {line}")]


def test_a_canceled_container_hears_it(podman: RootlessPodman) -> None:
    folder = _folder(podman)

    async def scene(rig: Rig) -> None:
        line = f"{POLITE} # canceled"
        job = await rig.submit("sh", "-c", line, secrets=("TOKEN",), **OPTIONS)
        environ = {**ENGINE, "WINDLASS_SECRET_TOKEN": SECRET}
        async with rig.agent_process(user=podman, environ=environ):
            await rig.files.log_line(job)
            assert any(f"sh -c {line}" in words for _, words in _programs())
            assert not any(SECRET in words for _, words in _programs())
            (place,) = (path for path in (folder / "w/containers").glob(f"*-{job}-1-*"))
            assert {path.name for path in place.iterdir()} == {"ender", "env", "report"}
            modes = [
                path.stat().st_mode & 0o777 for path in (place, place / "ender", place / "env")
            ]
            assert modes == [0o700, 0o600, 0o600]
            await rig.engine.jobs.cancel([job])
            ended = await rig.ended(job)
            assert (state_of(ended), await rig.files.log_end(job)) == ("canceled", b"up\nterm\n")
            assert podman.containers() == []
            assert list((folder / "w/containers").iterdir()) == []

    play(folder, scene, PATIENT)


def test_a_container_that_does_not_end_in_time_is_killed(podman: RootlessPodman) -> None:
    folder = _folder(podman)

    async def scene(rig: Rig) -> None:
        late = await rig.submit("sh", "-c", f"{STUBBORN} # late", timeout=0.5, retries=0, **OPTIONS)
        async with rig.agent_process(user=podman, environ=ENGINE):
            assert state_of(await rig.ended(late)) == "failed"
            assert (await rig.record(late)).message == "Timed out after 500 ms"
            assert podman.containers() == []
            assert list((folder / "w/containers").iterdir()) == []

    play(folder, scene)


def test_a_killed_agent_leaves_no_container_and_the_next_one_runs_the_job(
    podman: RootlessPodman,
) -> None:
    folder = _folder(podman)

    async def scene(rig: Rig) -> None:
        line = f"{STUBBORN} # killed"
        job = await rig.submit("sh", "-c", line, image=IMAGE, network="none")
        async with rig.agent_process(user=podman, environ=ENGINE) as agent:
            await rig.files.log_line(job)
            witnesses = _inside(line)
            assert witnesses
            agent.signal(signal.SIGKILL)
            for witness in witnesses:
                await witness.gone()
        await _runs_alone_again(rig, podman, job)
        assert podman.containers() == []

    play(folder, scene)


def test_if_nobody_is_left_the_next_agent_ends_the_container_first(podman: RootlessPodman) -> None:
    folder = _folder(podman)

    async def scene(rig: Rig) -> None:
        line = f"{STUBBORN} # orphaned"
        job = await rig.submit("sh", "-c", line, image=IMAGE, network="none")
        async with rig.agent_process(user=podman, environ=ENGINE) as agent:
            await rig.files.log_line(job)
            witnesses = _inside(line)
            _kill_with_guard_and_keeper(agent)
            await agent.process.wait()
            assert podman.containers() != []
            assert all(witness.alive for witness in witnesses)
        await _runs_alone_again(rig, podman, job)
        assert not any(witness.alive for witness in witnesses)

    play(folder, scene)


def test_a_stopped_agent_does_not_keep_its_container_beyond_the_lease(
    podman: RootlessPodman,
) -> None:
    folder = _folder(podman)

    async def scene(rig: Rig) -> None:
        line = f"{STUBBORN} # fenced"
        job = await rig.submit("sh", "-c", line, image=IMAGE, network="none")
        async with rig.agent_process(user=podman, environ=ENGINE) as agent:
            await rig.files.log_line(job)
            witnesses = _inside(line)
            agent.signal(signal.SIGSTOP)
            for witness in witnesses:
                await witness.gone()

    play(folder, scene, SHORT)


def _kill_with_guard_and_keeper(agent: AgentProcess) -> None:
    """Kills all three before one of them can notice."""
    guard = guard_of(agent.process.pid)
    (keeper, *_) = children_of(guard)
    family = (agent.process.pid, guard, keeper)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in family:
            os.kill(pid, number)


async def _runs_alone_again(rig: Rig, podman: RootlessPodman, job: int) -> None:
    """Starts the next agent: it runs the job's second attempt, and no other container exists."""
    async with rig.agent_process(user=podman, environ=ENGINE):
        await rig.files.log_line(job, 2)
        (name,) = podman.containers()
        assert f"-{job}-2-" in name
        await rig.engine.jobs.cancel([job])
        await rig.ended(job)
