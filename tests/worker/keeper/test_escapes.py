"""A process that leaves its job's group ends with the job all the same."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.rig import Rig, Witness, gone, play, state_of
from windlass.domain.values.errors import InvalidInput
from windlass.worker.keeper.cgroups import own_cgroup, remove_leftovers

# A daemon as they are made: two forks, a session of its own, an environment of its own.
DAEMON = """
import os, sys
listen, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        code = "import os, time; os.write({0}, b'%d' % os.getpid()); os.close({0}); time.sleep(999)"
        os.set_inheritable(tell, True)
        environ = {{}} if sys.argv[1] == "bare" else dict(os.environ)
        os.execve(sys.executable, [sys.executable, "-S", "-c", code.format(tell)], environ)
    os._exit(0)
os.wait()
os.close(tell)
print(os.read(listen, 20).decode(), flush=True)
if sys.argv[2] == "stay":
    import time
    time.sleep(999)
""".replace("{{}}", "{}")


# What it needs of a machine may not be there: then a start that asks for it is refused.
OWN = own_cgroup() or "/nowhere"


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def daemon_of(rig: Rig, job: int) -> Witness:
    return Witness(await pid_of(rig, job))


async def pid_of(rig: Rig, job: int) -> int:
    (pid, *_) = await rig.files.log_line(job)
    return int(pid)


async def submit(rig: Rig, environ: str, then: str = "end") -> int:
    return await rig.submit(sys.executable, "-S", "-c", DAEMON, environ, then)


@pytest.fixture
def cgroup() -> Iterator[str | None]:
    """A cgroup that jobs may have boxes in; None where this machine allows none."""
    path = f"{OWN}/windlass-test-{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError:
        yield None
        return
    yield path
    os.rmdir(path)  # which fails if anything is left in it


def test_a_daemon_ends_with_its_job(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            job = await submit(rig, "full")
            assert state_of(await rig.ended(job)) == "completed"
            await gone(await pid_of(rig, job))

    play(tmp_path, scene)


def test_a_daemon_lives_while_its_job_does_and_ends_with_its_cancel(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(slots=2):
            job = await submit(rig, "full", "stay")
            daemon = await daemon_of(rig, job)
            # The keeper looks around when another job ends, and leaves this one's alone.
            await rig.ended(await rig.submit("true"))
            assert daemon.alive
            await rig.engine.jobs.cancel([job], "enough")
            await daemon.gone()

    play(tmp_path, scene)


def test_a_daemon_ends_with_its_agent(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process() as agent:
            daemon = await daemon_of(rig, await submit(rig, "full", "stay"))
            agent.signal(signal.SIGKILL)
            await daemon.gone()

    play(tmp_path, scene)


@pytest.mark.parametrize("environ", ["full", "bare"])
def test_a_daemon_ends_when_agent_and_keeper_are_killed_together(
    tmp_path: Path, environ: str
) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process(slots=2) as agent:
            bystander = await rig.submit("sh", "-c", "echo $$; exec sleep 1000")
            witness = await daemon_of(rig, bystander)
            daemon = await daemon_of(rig, await submit(rig, environ, "stay"))
            agent.signal(signal.SIGSTOP)
            os.kill(witness.parent, signal.SIGKILL)
            agent.signal(signal.SIGKILL)
            await witness.gone()
            await daemon.gone()

    play(tmp_path, scene)


def test_a_keeper_whose_guard_was_killed_is_replaced_with_its_guard(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent() as agent:
            first_hangs = 'echo $$; [ "$WINDLASS_ATTEMPT" != 1 ] || exec sleep 1000'
            job = await rig.submit("sh", "-c", first_hangs)
            await daemon_of(rig, job)
            keeper = Witness(agent.keeper_pid)
            os.kill(keeper.parent, signal.SIGKILL)
            record = await rig.ended(job)
            assert (state_of(record), record.facts.failed, record.facts.lost) == ("completed", 0, 0)
            assert not keeper.alive
            replaced = Witness(agent.keeper_pid)
            assert command_of(replaced.parent).startswith(b"windlass guard\0")

    play(tmp_path, scene)


@pytest.mark.parametrize("then", ["end", "stay"])
def test_in_a_box_a_daemon_of_any_kind_ends_with_its_job(
    tmp_path: Path, cgroup: str | None, then: str
) -> None:
    async def scene(rig: Rig) -> None:
        if cgroup is None:
            with pytest.raises(InvalidInput, match="cgroup"):
                async with rig.agent(cgroup=OWN):
                    pass
            return
        async with rig.agent(cgroup=cgroup, slots=2):
            job = await submit(rig, "bare", then)
            if then == "stay":
                daemon = await daemon_of(rig, job)
                assert state_of(await rig.ended(await rig.submit("true"))) == "completed"
                assert daemon.alive
                await rig.engine.jobs.cancel([job], "enough")
            await rig.ended(job)
            await gone(await pid_of(rig, job))
            failed = await rig.ended(await rig.submit("/no/such/program"))
            assert state_of(failed) == "failed"

    play(tmp_path, scene)


def test_a_folder_that_is_no_cgroup_is_refused(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        with pytest.raises(InvalidInput, match="cgroup"):
            async with rig.agent(cgroup=str(tmp_path)):
                pass

    play(tmp_path, scene)


def test_boxes_of_a_keeper_that_was_killed_are_removed(cgroup: str | None) -> None:
    if cgroup is None:
        return
    past = subprocess.Popen(["true"])
    past.wait()
    os.makedirs(f"{cgroup}/windlass-{past.pid}/3")
    with subprocess.Popen(["sleep", "999"]) as stray:
        Path(f"{cgroup}/windlass-{past.pid}/3/cgroup.procs").write_text(str(stray.pid))
        remove_leftovers(cgroup)
        assert stray.wait() == -signal.SIGKILL
    remove_leftovers(cgroup)
    assert not os.path.exists(f"{cgroup}/windlass-{past.pid}")
