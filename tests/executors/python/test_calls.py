"""Python functions as jobs: results, failures, output and progress, in real processes."""

import asyncio
import os
import socket
import sys
from typing import Any

import pytest

from tests.executors.conftest import OnPython, PythonBench
from windlass.domain.tasks.python import Importable
from windlass.domain.values.errors import InvalidInput


def test_a_plain_function_returns_its_result_as_json(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        result = await python.call("add", 2, right=3)
        assert (result.outcome, result.result) == ("completed", 5)
        assert (await python.call("nothing")).result is None
        assert (await python.call("Service.measure", "four")).result == 4

    on_python(body)


def test_an_async_function_runs_in_a_loop_apart(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        results = await asyncio.gather(*(python.call("greet", f"n{i}") for i in range(50)))
        assert [result.result for result in results] == [{"hello": f"n{i}"} for i in range(50)]

    on_python(body)


@pytest.mark.skipif(sys.platform != "linux", reason="the policy is Linux's")
def test_a_function_never_takes_the_processor_from_the_agent_that_wakes_it(
    on_python: OnPython,
) -> None:
    async def body(python: PythonBench) -> None:
        assert os.sched_getscheduler(0) == os.SCHED_OTHER
        assert (await python.call("scheduling")).result == os.SCHED_BATCH

    on_python(body)


def test_a_call_that_was_announced_runs_and_one_that_never_came_is_not_missed(
    on_python: OnPython,
) -> None:
    async def body(python: PythonBench) -> None:
        for name in ("nothing", "nothing_async", "nothing"):
            assert (await python.call(name)).outcome == "completed"
            for announced in (1, 3, 0, 2):
                for _ in range(announced):
                    python.executor.expect()
                assert (await python.call(name)).outcome == "completed"
            python.executor.expect()

    on_python(body)


VALUES: list[Any] = [
    None, True, 0, -1, 2**63 - 1, 1.5, "", "naïve 🎬", [], {}, {"a": [1, {"b": None}]},
    "x" * 200_000,
]  # fmt: skip


def test_values_come_back_as_they_were(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        results = await asyncio.gather(*(python.call("echo", value) for value in VALUES))
        assert [result.outcome for result in results] == ["completed"] * len(VALUES)
        assert [result.result for result in results] == VALUES

    on_python(body)


@pytest.mark.parametrize(
    ("name", "message"), [("fail", "never works"), ("fail_async", "never works either")]
)
def test_an_exception_fails_the_job_and_its_traceback_is_in_the_log(
    on_python: OnPython, name: str, message: str
) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context(name)
        result = await python.executor.run(context)
        assert (result.outcome, result.failure) == ("failed", "execution")
        assert result.message is not None
        assert result.message.startswith("ValueError: this one")
        log = context.written.decode()
        assert log.startswith("Traceback (most recent call last):")
        assert "functions.py" in log
        assert f"in {name}" in log
        assert message in log
        assert "windlass/executors" not in log

    on_python(body)


CLASSES = {
    "reset": ("network", None),
    "timeout": ("network", None),
    "memory": ("resource", None),
    "full": ("resource", None),
    "missing": ("execution", None),
    "exit": ("execution", 3),
}


def test_exceptions_have_classes(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        results = [await python.call("raise_named", name) for name in CLASSES]
        assert [(result.failure, result.exit_code) for result in results] == [*CLASSES.values()]

    on_python(body)


def test_a_refused_connection_is_a_network_failure(on_python: OnPython) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

        async def body(python: PythonBench) -> None:
            result = await python.call("open_closed_port", port)
            assert (result.outcome, result.failure) == ("failed", "network")

        on_python(body)


NOT_CALLABLE: list[tuple[str, tuple[int, ...], str]] = [
    ("unmarked", (), "to be marked with @windlass.task"),
    ("no_such_function", (), "has no no_such_function"),
    ("tests.no_such_module:f", (), "No module named 'tests.no_such_module'"),
    ("tests.executors.broken_module:f", (), "a_package_that_does_not_exist"),
    ("os:getcwd", (), "standard library"),
    ("__main__:f", (), "__main__"),
    ("tests.executors.functions:add; import os", (), "package.module:function"),
    ("return_object", (), "to be a JSON value"),
    ("return_infinity", (), "a finite number"),
    ("add", (1, 2, 3), "arguments that tests.executors.functions:add takes"),
]


# This worker does not have them, but others may.
LACKING = {"no_such_function", "tests.no_such_module:f", "tests.executors.broken_module:f"}


def test_what_cannot_be_called_is_a_configuration_failure(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        for name, args, message in NOT_CALLABLE:
            result = await python.call(name, *args)
            assert (result.outcome, result.failure) == ("failed", "configuration")
            lacks = name in LACKING
            assert result.misfit is not (lacks or name.startswith("return_"))  # those had run
            assert result.unable is lacks
            assert message in str(result.message)

    on_python(body)


def test_a_module_that_cannot_be_imported_shows_why_in_the_log(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("tests.executors.broken_module:f")
        await python.executor.run(context)
        log = context.written.decode()
        assert "broken_module.py" in log
        assert "ModuleNotFoundError: No module named 'a_package_that_does_not_exist'" in log
        assert "importlib" not in log

    on_python(body)


def test_a_type_error_inside_the_function_is_its_own(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        assert (await python.call("fetch_type_error")).failure == "execution"

    on_python(body)


def test_arguments_that_are_no_call_are_refused(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        no_calls: list[Any] = [
            None,
            [],
            {"function": 3},
            {"function": "a:b", "kwargs": []},
            {"f": "a:b"},
        ]
        for args in no_calls:
            result = await python.executor.run(python.bench.context(args))
            assert (result.outcome, result.failure) == ("failed", "configuration")
            assert result.misfit

    on_python(body)


def test_modules_that_can_have_no_functions_for_jobs_are_not_imported(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        for path in ("this:s", "idlelib.idle:main", "windlass.cli.app:main"):
            context = python.context(path)
            result = await python.executor.run(context)
            assert (result.failure, result.misfit) == ("configuration", True)
            assert "standard library" in (result.message or "")
            assert context.written == b""  # importing `this` prints a poem
        assert (await python.call("echo", 1)).outcome == "completed"

    on_python(body)


def test_a_worker_allows_some_modules_only(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        assert (await python.call("echo", 1)).outcome == "completed"
        result = await python.call("tests.executors.named_functions:f")
        assert (result.failure, result.misfit, result.unable) == ("configuration", False, True)
        assert "tests.executors.functions" in (result.message or "")

    on_python(body, allowed=["tests.executors.functions"])


@pytest.mark.parametrize(
    ("patterns", "module", "covered"),
    [
        (["app"], "app", True),
        (["app"], "app.tasks.media", True),
        (["app"], "apple", False),
        (["app.*"], "app", False),
        (["app.tasks.*"], "app.tasks.media", True),
        (["a", "b"], "b.c", True),
        (["statistics"], "statistics", True),
        (["app"], "os", False),
        ([], "os.path", False),
        ([], "app", True),
    ],
)
def test_patterns_say_which_modules_jobs_may_name(
    patterns: list[str], module: str, covered: bool
) -> None:
    try:
        Importable(patterns).check(f"{module}:f")
    except InvalidInput:
        assert not covered
    else:
        assert covered
    Importable(patterns, preloaded=[module]).check(f"{module}:f")


def test_output_goes_to_the_log_of_its_own_job(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        contexts = [python.context("print_lines", [f"line {i}"]) for i in range(200)]
        await asyncio.gather(*(python.executor.run(context) for context in contexts))
        assert [context.written for context in contexts] == [
            f"line {i}\n".encode() for i in range(200)
        ]

    on_python(body)


def test_output_below_python_is_in_the_log_in_order(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("print_below_python")
        await python.executor.run(context)
        assert context.written.decode().splitlines() == [
            "from Python",
            "from a descriptor",
            "from a program",
            "to the error stream",
        ]

    on_python(body)


def test_a_flood_of_output_arrives_whole(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("flood", 100)
        result = await python.executor.run(context)
        assert result.outcome == "completed"
        assert len(context.written) == 100 * 65_536

    on_python(body)


def test_async_jobs_at_once_write_to_their_own_logs(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        contexts = {name: python.context("print_interleaved", name, 20) for name in "abc"}
        await asyncio.gather(*map(python.executor.run, contexts.values()))
        for name, context in contexts.items():
            lines = [f"{name} {number}" for number in range(20)]
            assert context.written.decode().splitlines() == lines

    on_python(body)


def test_current_knows_the_job_and_reports_progress(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("report_progress")
        context.spec = {"workflow": 77}
        result = await python.executor.run(context)
        assert context.values == [0.0, 0.25, 0.5, 0.75, 1.0]
        seen = result.result
        assert (seen["job"], seen["attempt"], seen["workflow"]) == (context.job, 1, 77)
        assert seen["thread"] == context.job
        own = {name: seen["environment"][name] for name in ("WINDLASS_JOB", "WINDLASS_WORKFLOW")}
        assert own == {"WINDLASS_JOB": str(context.job), "WINDLASS_WORKFLOW": "77"}

    on_python(body)


def test_current_in_async_jobs_is_each_its_own(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        contexts = [python.context("report_progress_async") for _ in range(10)]
        results = await asyncio.gather(*map(python.executor.run, contexts))
        assert [result.result for result in results] == [context.job for context in contexts]
        for context in contexts:
            assert context.values == [{"step": step} for step in range(5)]

    on_python(body)
