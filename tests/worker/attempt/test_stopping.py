"""Cancel and timeout: SIGTERM, a grace, SIGKILL, to everything the job has started."""

from pathlib import Path

from tests.worker.rig import Rig, Witness, gone, play, state_of
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE

# A job and its grandchild, both deaf to SIGTERM; each tells its pid.
STUBBORN = """
trap '' TERM
sh -c 'trap "" TERM; (echo $$; exec sleep 1000) & wait' &
echo $$
while :; do sleep 1000; done
"""


def test_a_canceled_group_is_killed_though_it_ignores_sigterm(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            job = await rig.submit("sh", "-c", STUBBORN)
            pids = [int(line) for line in await rig.files.log_line(job, lines=2)]
            witnesses = [Witness(pid) for pid in pids]
            await rig.engine.jobs.cancel([job])
            assert state_of(await rig.ended(job)) == "canceled"
            for witness in witnesses:
                await witness.gone()

    play(tmp_path, scene)


def test_a_job_may_use_its_grace_to_tidy_up(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            script = "trap 'echo bye; exit 0' TERM; sleep 1000 & echo ready; wait"
            job = await rig.submit("sh", "-c", script)
            await rig.files.log_line(job)
            await rig.engine.jobs.cancel([job])
            assert state_of(await rig.ended(job)) == "canceled"
            assert await rig.files.log_end(job) == b"ready\nbye\n"

    play(tmp_path, scene)


def test_a_process_that_left_its_group_ends_with_its_job(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(slots=2):
            other = await rig.submit("sh", "-c", "echo $$; exec sleep 1000")
            await rig.files.log_line(other)
            job = await rig.submit("sh", "-c", "setsid sh -c 'echo $$; exec sleep 1000' & wait $!")
            (pid,) = await rig.files.log_line(job)
            witness = Witness(int(pid))
            await rig.engine.jobs.cancel([job])
            await rig.ended(job)
            await witness.gone()
            assert (await rig.record(other)).facts.is_open

    play(tmp_path, scene)


def test_a_job_over_its_time_is_stopped_and_times_out(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            argv = ["sh", "-c", "echo $$; exec sleep 1000"]
            job = await rig.submit(*argv, timeout_ms=3_000, retries=0)
            (pid,) = await rig.files.log_line(job)
            witness = Witness(int(pid))
            record = await rig.ended(job)
            assert state_of(record) == "failed"
            assert FAILURE_BY_CODE[record.failure] == "timeout"
            await witness.gone()

    play(tmp_path, scene)


def test_a_job_that_says_nothing_times_out(tmp_path: Path) -> None:
    """That output puts it off is shown in virtual time, in test_timers.py."""

    async def scene(rig: Rig) -> None:
        async with rig.agent():
            script = "echo once; exec sleep 1000"
            job = await rig.submit("sh", "-c", script, idle_timeout_ms=600, retries=0)
            record = await rig.ended(job)
            assert FAILURE_BY_CODE[record.failure] == "timeout"
            assert record.message == "No sign of life for 600 ms"

    play(tmp_path, scene)


def test_what_a_job_leaves_in_its_group_ends_with_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            job = await rig.submit("sh", "-c", "sleep 1000 & echo $!")
            assert state_of(await rig.ended(job)) == "completed"
            await gone(int(await rig.files.log_end(job)))

    play(tmp_path, scene)
