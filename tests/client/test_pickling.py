"""Tasks and errors travel between the processes of a program; handles and clients say why not."""

import asyncio
import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import windlass
from tests.embedded import functions
from windlass.domain.values.errors import NOT_KNOWN


@pytest.fixture
def client() -> Iterator[windlass.Client]:
    with windlass.Client.embedded(":memory:", immediate=True) as made:
        yield made


def test_a_task_is_pickled_by_its_name_as_functions_are() -> None:
    assert pickle.loads(pickle.dumps(functions.add)) is functions.add
    assert copy.deepcopy(functions.add) is copy.copy(functions.add) is functions.add
    patient = functions.add.options(retries=9, labels={"a": "b"})
    again = pickle.loads(pickle.dumps(patient))
    assert again(1, 2) == 3
    assert again.job(1, 2) == patient.job(1, 2)
    assert again.job(1, 2).retries == 9


def test_handles_are_copied_as_themselves_and_say_what_to_pickle(client: windlass.Client) -> None:
    @dataclasses.dataclass
    class Order:
        job: object

    job = client.submit(functions.add, 1, 2)
    assert dataclasses.asdict(Order(job))["job"] is job
    for handle in (job, job.asynchronous, client.workflow(1)):
        assert copy.copy(handle) is handle
        with pytest.raises(TypeError, match=r"cannot pickle <.* 1>: keep its id, and make"):
            pickle.dumps(handle)
    for own in (client, client.asynchronous):
        with pytest.raises(TypeError, match=r"cannot pickle .*: make one in each process"):
            pickle.dumps(own)


def test_errors_say_the_same_in_another_process(client: windlass.Client) -> None:
    errors: list[windlass.WindlassError] = [
        windlass.InvalidInput("args", "something", NOT_KNOWN, "a hint"),
        windlass.UnknownName("option", "retrys", "one of many", "did you mean retries?"),
        windlass.Conflict("a_code", "a message", 5),
        windlass.NotFound("job", 7),
        windlass.TooManyRequests(5, "a message"),
        windlass.StoreUnavailable("a message", True),
        windlass.Unreachable("a message", sent=False),
        windlass.ServerError(403, "forbidden", "a message"),
        windlass.ResultTimeout("a message", [1]),
    ]
    with pytest.raises(windlass.JobFailed) as failed:
        client.submit(functions.fail, "broken").result(timeout=60)
    for error in [*errors, failed.value]:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert (again.code, again.describe()) == (error.code, error.describe())
    assert pickle.loads(pickle.dumps(failed.value)).traceback == failed.value.traceback


def test_a_handle_of_async_code_is_not_pickled_either(client: windlass.Client) -> None:
    async def refused() -> str:
        with pytest.raises(TypeError) as told:
            pickle.dumps(await client.as_async().submit(functions.add, 1, 2))
        return str(told.value)

    assert "client.job(id)" in asyncio.run(refused())


PROGRAM = """
import multiprocessing
import windlass


class Busy(Exception):
    pass


@windlass.task(retries=1, retry_on=Busy)
def add(left: int, right: int) -> int:
    return left + right


def describe(number: int) -> list[object]:
    job = add.job(number, 1)
    return [job.args["function"], list(job.retry_on), add(number, 1)]


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(describe, (1,)), pool.apply(add, (1, 2)), describe(1))
"""


def test_tasks_of_a_program_have_one_name_in_all_its_processes(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PROGRAM)
    words = [sys.executable, "shop.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    one = "['shop:add', ['shop.Busy'], 2]"
    assert (done.stdout.strip(), done.stderr) == (f"{one} 3 {one}", "")
