"""Functions under task names of their own: found by import, checked where they are known."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.executors import named_functions
from tests.worker.rig import CONFIG, Rig, play, state_of
from windlass.clock import RealChance
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.domain.values.errors import InvalidInput
from windlass.engine.engine import Engine
from windlass.executors import loading
from windlass.executors.loading import load_executors, load_kinds
from windlass.plugins import Named
from windlass.store.sqlite.memory import MemoryStore
from windlass.tasks.task import task

MODULE = "tests.executors.named_functions"


async def end_of(rig: Rig, task: str, args: Any) -> tuple[str, Any, str | None]:
    record = await rig.ended(await rig.submit(task=task, args=args))
    result = None if record.result is None else msgspec.json.decode(record.result)
    return state_of(record), result, FAILURE_BY_CODE[record.failure]


def test_a_worker_that_imports_them_runs_them_by_name(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        found = load_executors(["python"], imports=[MODULE])
        async with rig.agent(executors=found, slots=2):
            job = await rig.submit(task="thumbs.make", args={"width": 3, "colour": "red"})
            record = await rig.ended(job)
            assert record.result == f'"3x2 red for job {job}"'.encode()
            assert await end_of(rig, "thumbs.wait", ["a", "b"]) == ("completed", ["a", "b"], None)
            # A misfit that no server saw ends this job alone, and the next one runs.
            assert await end_of(rig, "thumbs.make", {"wide": 3}) == (
                "rejected", None, "configuration",
            )  # fmt: skip
            assert await end_of(rig, "thumbs.make", "wide") == ("rejected", None, "configuration")
            assert (await end_of(rig, "thumbs.make", [1]))[0] == "completed"

    play(tmp_path, scene)


def test_a_worker_that_does_not_is_not_given_their_jobs(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent("without"):
            job = await rig.submit(task="thumbs.make", args=[1])
            await rig.ended(await rig.submit("true"))
            assert (await rig.record(job)).facts.is_open
            async with rig.agent("with", executors=load_executors(["python"], [MODULE])):
                assert state_of(await rig.ended(job)) == "completed"

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("task", "args", "words"),
    [
        ("thumbs.make", {"wide": 3}, "missing a required argument: 'width'"),
        ("thumbs.make", [1, 2, 3], "too many positional arguments"),
        ("thumbs.make", 3, "an object with arguments by name"),
        ("thumbs.make", None, "missing a required argument"),
        ("thumbs.wait", {"names": 1}, "unexpected keyword argument"),
    ],
)
def test_a_server_that_knows_them_refuses_a_misfit(task: str, args: Any, words: str) -> None:
    kinds = load_kinds([MODULE])
    with pytest.raises(InvalidInput, match=words) as refused:
        kinds[task].check(args, "jobs[0].args")
    assert refused.value.field == "jobs[0].args"


def test_a_submit_is_refused_by_an_engine_that_knows_the_task(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        store = MemoryStore(rig.clock, "s2")
        engine = Engine(store, CONFIG, RealChance(), tasks=load_kinds([MODULE]))
        await engine.start()
        try:
            with pytest.raises(InvalidInput, match="'width'"):
                await engine.submit([JobSpec(task="thumbs.make", args={"height": 1})])
            assert (await engine.submit([JobSpec(task="thumbs.make", args=[1])])).ids
        finally:
            await engine.close()
            await store.close()

    play(tmp_path, scene)


def test_a_call_becomes_arguments_that_people_can_write() -> None:
    made = named_functions.make.job(3, colour="red")
    assert (made.task, made.args) == ("thumbs.make", {"width": 3, "colour": "red"})
    assert named_functions.wait.job("a", "b").args == ["a", "b"]
    assert named_functions.wait.job().secrets == ("TOKEN",)


@pytest.mark.parametrize("value", [f"{MODULE}:make", MODULE])
def test_a_plugin_names_a_function_or_its_module(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    task = Named("thumbs.make", value, "thumbs")
    monkeypatch.setattr(loading, "added", lambda kind: [task])
    assert {"thumbs.make", "thumbs.wait", "python"} <= set(load_executors())
    assert "thumbs.make" in load_kinds()


def test_a_module_that_is_not_there_is_said_at_once() -> None:
    with pytest.raises(InvalidInput, match="no_such_module"):
        load_executors(["python"], imports=["no_such_module"])


def test_one_name_is_one_task() -> None:
    with pytest.raises(InvalidInput, match="named_functions"):

        @task(name="thumbs.make")
        def other() -> None: ...
