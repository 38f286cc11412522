"""Python functions of isolated jobs: each has a process for itself, in the mode of its job."""

import json
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.executors.python.test_in_agent import FUNCTIONS
from tests.support.debian import missing_reason
from tests.worker.rig import Rig, play, state_of
from windlass.domain.job.forms import JobLimits
from windlass.domain.matching.functions import MISSING
from windlass.executors.loading import load_executors
from windlass.executors.python.executor import PythonExecutor

SOURCES = Path(__file__).parents[3]
FILES = "tests.executors.file_functions"


async def _submit(rig: Rig, name: str, *args: object, **fields: object) -> int:
    call = {"function": name, "args": list(args)}
    return await rig.submit(task="python", args=call, **fields)


def test_functions_run_in_a_sandbox(tmp_path: Path) -> None:
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)

    async def scene(rig: Rig) -> None:
        executors = load_executors(["python"])
        async with rig.agent(executors=executors, slots=4, shares=(SOURCES,)):
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
            assert record.message == "MemoryError (its limits: memory 300 MiB)"

    play(tmp_path, scene)


@pytest.fixture
def sandbox() -> str:
    """The mode of a whole worker, if this machine can do it."""
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)
    return "sandbox"


def test_functions_of_a_confined_worker_take_and_return_files(tmp_path: Path, sandbox: str) -> None:
    async def scene(rig: Rig) -> None:
        executors = load_executors(["python"])
        async with rig.agent(executors=executors, slots=4, shares=(SOURCES,), isolation=sandbox):
            for text in ("one", "two"):  # the second time, the worker knows what they return
                made = await _submit(rig, f"{FILES}:write", text)
                many = await _submit(rig, f"{FILES}:write_many", {"a": text, "b": "both"})
                assert state_of(await rig.ended(made)) == "completed", await rig.ended(made)
                assert rig.files.artifacts[made, "made.txt"] == text.encode()
                assert state_of(await rig.ended(many)) == "completed", await rig.ended(many)
                assert rig.files.artifacts[many, "a"] == text.encode()
                assert rig.files.artifacts[many, "b"] == b"both"
                given = {"$file": {"job": made, "artifact": "made.txt"}}
                taken = await _submit(rig, f"{FILES}:read", given)
                assert (await rig.ended(taken)).result == f'"{text}"'.encode()

    play(tmp_path, scene)


def test_functions_that_share_a_confined_process_have_folders_of_their_own(
    tmp_path: Path, sandbox: str
) -> None:
    async def scene(rig: Rig) -> None:
        executors = load_executors(["python"])
        async with rig.agent(executors=executors, slots=1, shares=(SOURCES,), isolation=sandbox):
            for function in ("pass_through_a_file", "pass_through_a_file_async"):
                folders = set()
                for text in ("one", "two", "three"):
                    job = await _submit(rig, f"{FILES}:{function}", text)
                    record = await rig.ended(job)
                    assert state_of(record) == "completed", record.message
                    said, folder = json.loads(record.result or b"")
                    assert said == text
                    folders.add(folder)
                assert len(folders) == 3
                for folder in folders:
                    left = await _submit(rig, f"{FILES}:is_there", folder)
                    assert (await rig.ended(left)).result == b"false"

    play(tmp_path, scene)


def test_a_function_in_a_home_that_jobs_do_not_see_is_reported_with_the_reason(
    tmp_path: Path, sandbox: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "at_home.py").write_text("import windlass\n\n@windlass.task\ndef f():\n    pass\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)

    async def scene(rig: Rig) -> None:
        executors = load_executors(["python"])
        python = executors["python"]
        assert isinstance(python, PythonExecutor)
        async with rig.agent(executors=executors, shares=(SOURCES,), isolation=sandbox):
            job = await _submit(rig, "at_home:f")
            record = await rig.ended(job)
            (why,) = python.functions[MISSING].values()
            assert why.startswith(
                "ModuleNotFoundError: No module named 'at_home'; at_home.py is in"
            )
            assert why.endswith("in a folder outside your home, or with --isolation process")
            assert record.reason == f"this worker cannot run at_home:f: {why}"

    with capture_logs() as logs:
        play(tmp_path, scene)
    (warning,) = [log for log in logs if log["event"] == "folder_hidden_from_jobs"]
    assert warning["log_level"] == "warning"
    assert warning["message"].startswith(f"jobs cannot read {home}, where this worker was started")
