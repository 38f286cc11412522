"""Jobs on a real worker are told which GPUs, ports or processors they have, and share none."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.running import run
from tests.worker.rig import Rig, Witness, play, state_of
from windlass.domain.matching.room import parse_offer
from windlass.executors.loading import load_executors
from windlass.worker.attempt.context import IndexUse

FUNCTIONS = "tests.executors.functions"
NAMES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "WINDLASS_RESOURCE_GPUS")
SEEN = " ".join(f"${name}" for name in NAMES)


def offer(text: str) -> dict[str, Any]:
    parsed = parse_offer(text, processors=4)
    assert parsed is not None
    return parsed.metadata


def test_a_program_sees_the_indices_that_its_lease_holds(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        offered = offer("gpus=[4,7],licences=['lic-a','lic-b']")
        async with rig.agent(slots=4, metadata=offered):
            both = await rig.submit(
                "sh", "-c", f"echo {SEEN} $WINDLASS_RESOURCE_LICENCES",
                resources={"gpus": 2, "licences": 1},
            )  # fmt: skip
            assert state_of(await rig.ended(both)) == "completed"
            assert await rig.files.log_end(both) == b"4,7 4,7 4,7 lic-a\n"
            none = await rig.submit("sh", "-c", f"echo none {SEEN}")
            await rig.ended(none)
            assert await rig.files.log_end(none) == b"none\n"

    play(tmp_path, scene)


def test_functions_see_their_own_indices_in_processes_that_end_with_them(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        executors = load_executors(["python"])
        async with rig.agent(slots=1, metadata=offer("gpus=[0,1]"), executors=executors):

            async def call(name: str, **fields: Any) -> list[Any]:
                args = {"function": f"{FUNCTIONS}:{name}", "args": list(NAMES)}
                job = await rig.submit(task="python", args=args, **fields)
                record = await rig.ended(job)
                assert state_of(record) == "completed", record
                found: list[Any] = msgspec.json.decode(record.result or b"null")
                return found

            before = await call("surroundings")
            both = await call("surroundings", resources={"gpus": 2})
            one = await call("surroundings", resources={"gpus": 1})
            waiting = await call("surroundings_async", resources={"gpus": 1})
            after = await call("surroundings")
        assert [seen[2] for seen in (before, both, one, waiting, after)] == [
            [None] * 3, ["0,1"] * 3, ["0"] * 3, ["0"] * 3, [None] * 3
        ]  # fmt: skip
        # What a function opened may still use its GPU: its process is not used again.
        assert len({both[0], one[0], waiting[0], after[0]}) == 4

    play(tmp_path, scene)


def test_jobs_run_on_their_own_processors_if_they_are_pinned(tmp_path: Path) -> None:
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        pytest.skip("needs two processors")

    async def scene(rig: Rig) -> None:
        offered = offer(f"cpus=[{usable[0]},{usable[1]}]")
        executors = load_executors(["shell", "python"])
        async with rig.agent(slots=2, metadata=offered, pins=True, executors=executors):
            grep = ("grep", "Cpus_allowed_list", "/proc/self/status")
            one = await rig.submit(*grep, resources={"cpus": 1})
            await rig.ended(one)
            assert (await rig.files.log_end(one)).split() == [
                b"Cpus_allowed_list:", b"%d" % usable[0]
            ]  # fmt: skip
            call = {"function": f"{FUNCTIONS}:surroundings"}
            both = await rig.submit(task="python", args=call, resources={"cpus": 2})
            result = msgspec.json.decode((await rig.ended(both)).result or b"")
            assert result[1] == usable[:2]

    play(tmp_path, scene)
    assert sorted(os.sched_getaffinity(0)) == usable


# Takes its GPU for itself, as far as processes can, and fails if another has it.
ALONE = 'exec 9>"$LOCKS/$WINDLASS_RESOURCE_GPUS"; flock -n 9 || exit 9; echo $$; {}'
FIRST_HANGS = '[ "$WINDLASS_ATTEMPT" != 1 ] || exec sleep 1000'


def test_kill_9_of_agent_and_keeper_leaves_no_index_with_two_jobs(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        gpus = offer("gpus=[0,1]")
        locks = tmp_path / "locks"
        locks.mkdir()

        async def submit(then: str) -> int:
            script = ALONE.format(then)
            env = {"LOCKS": str(locks)}
            return await rig.submit("sh", "-c", script, env=env, resources={"gpus": 1}, retries=0)

        async with rig.agent_process(slots=4, metadata=gpus) as first:
            jobs = [await submit(FIRST_HANGS) for _ in range(2)]
            witnesses = [Witness(int((await rig.files.log_line(job))[0])) for job in jobs]
            jobs += [await submit("sleep 0.05") for _ in range(4)]
            first.signal(signal.SIGSTOP)
            os.kill(witnesses[0].parent, signal.SIGKILL)  # the keeper
            first.signal(signal.SIGKILL)
            await first.process.wait()
            for witness in witnesses:
                await witness.gone()  # by the keeper's guard
            async with rig.agent_process(slots=4, metadata=gpus):
                ends = [state_of(await rig.ended(job)) for job in jobs]
                assert ends == ["completed"] * 6
        assert sorted(path.name for path in locks.iterdir()) == ["0", "1"]

    play(tmp_path, scene)


def test_an_attempt_waits_for_the_processes_of_the_last_one() -> None:
    async def scene() -> list[str]:
        use, seen = IndexUse(), []

        async def attempt(number: int, **indices: tuple[str, ...]) -> None:
            await use.take((number, 1), indices)
            seen.append(f"{number} has it")

        await attempt(1, gpus=("0", "1"))
        waits = asyncio.create_task(attempt(2, gpus=("1",)))
        stopped = asyncio.create_task(attempt(3, gpus=("1",)))
        await attempt(4, gpus=("2",))
        use.free((4, 1))
        stopped.cancel()
        await asyncio.wait((stopped,))
        seen.append("1 ends")
        use.free((1, 1))
        await waits
        return seen

    assert run(scene()) == ["1 has it", "4 has it", "1 ends", "2 has it"]
