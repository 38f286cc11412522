"""Functions of different namespaces never run in the same process."""

import pytest

from tests.executors.conftest import OnPython, PythonBench
from tests.support.job_context import is_alive
from windlass.executors.python.crew import MAX_CREWS


@pytest.mark.parametrize("function", ["surroundings", "surroundings_async"])
def test_a_process_serves_one_namespace(on_python: OnPython, function: str) -> None:
    async def body(python: PythonBench) -> None:
        async def pid(namespace: str) -> int:
            found = await python.executor.run(python.context_in(namespace, function))
            assert found.outcome == "completed", found.message
            return int(found.result[0])

        pids = {name: {await pid(name) for _ in range(5)} for name in ("a", "b", "a", "c")}
        assert not pids["a"] & pids["b"]
        assert not pids["a"] & pids["c"]
        assert not pids["b"] & pids["c"]

    on_python(body, slots=1)


def test_processes_of_idle_namespaces_end_and_those_at_work_stay(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        async def pid(namespace: str) -> int:
            found = await python.executor.run(python.context_in(namespace, "surroundings"))
            return int(found.result[0])

        busy = python.context_in("busy", "sleep_and_clean_up")
        task = python.start(busy)
        await busy.until_written(b"sleeping")
        pids = [await pid(f"n{number}") for number in range(2 * MAX_CREWS)]
        assert len(set(pids)) == len(pids)
        assert not task.done()
        again = await pid("n0")
        assert again not in pids
        assert python.executor.processes <= MAX_CREWS + 1
        assert is_alive(pids[-1])
        busy.stopping.set()
        assert (await task).outcome == "canceled"

    on_python(body, slots=1)
