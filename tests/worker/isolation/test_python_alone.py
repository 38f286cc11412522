"""Python functions of isolated jobs: each has a process for itself, in the mode of its job."""

from pathlib import Path

import pytest

from tests.executors.python.test_in_agent import FUNCTIONS
from tests.support.debian import missing_reason
from tests.worker.rig import Rig, play, state_of
from windlass.domain.job.forms import JobLimits
from windlass.executors import load_executors


async def _submit(rig: Rig, name: str, *args: object, **fields: object) -> int:
    call = {"function": name, "args": list(args)}
    return await rig.submit(task="python", args=call, **fields)


def test_functions_run_in_a_sandbox(tmp_path: Path) -> None:
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)
    sources = Path(__file__).parents[3]

    async def scene(rig: Rig) -> None:
        executors = load_executors(["python"])
        async with rig.agent(executors=executors, slots=4, shares=(sources,)):
            demands = {"isolation": "sandbox"}
            plain = await _submit(rig, f"{FUNCTIONS}:add", 20, 22, **demands)
            waiting = await _submit(rig, f"{FUNCTIONS}:greet", "fleet", **demands)
            printed = await _submit(rig, f"{FUNCTIONS}:print_lines", ["one", "two"], **demands)
            failed = await _submit(rig, f"{FUNCTIONS}:fail", retries=0, **demands)
            where = await _submit(rig, f"{FUNCTIONS}:pid", **demands)
            napping = await _submit(rig, f"{FUNCTIONS}:nap_between_steps", "PATH", **demands)
            assert (await rig.ended(plain)).result == b"42", (await rig.ended(plain)).message
            assert (await rig.ended(waiting)).result == b'{"hello":"fleet"}'
            assert state_of(await rig.ended(printed)) == "completed"
            assert await rig.files.log_end(printed) == b"one\ntwo\n"
            assert state_of(await rig.ended(failed)) == "failed"
            assert int((await rig.ended(where)).result or b"0") in range(1, 50)
            napped = await rig.ended(napping)
            assert (napped.result or b"").startswith(b'[2,"/'), napped.message

    play(tmp_path, scene)


def test_a_function_with_limits_is_held_to_them(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        executors = load_executors(["python"])
        async with rig.agent(executors=executors, slots=2):
            limits = JobLimits(memory="300MiB")
            job = await _submit(rig, f"{FUNCTIONS}:allocate", 10**9, retries=0, limits=limits)
            record = await rig.ended(job)
            assert state_of(record) == "failed"
            assert record.message == "MemoryError (its limits: memory 300MiB)"

    play(tmp_path, scene)
