"""Fixtures for tests of executors: a bench with a real keeper, in one loop a test."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.job_context import Workbench, workbench
from windlass.executors.python.executor import PythonExecutor
from windlass.ports.executor import Result

PATIENCE_S = 180


class PythonBench:
    """A bench with an executor for Python functions."""

    def __init__(self, bench: Workbench, executor: PythonExecutor) -> None:
        self.bench = bench
        self.executor = executor

    def context(self, name: str, *args: object, **kwargs: object) -> Any:
        path = name if ":" in name else f"tests.executors.functions:{name}"
        return self.bench.context({"function": path, "args": list(args), "kwargs": kwargs})

    def context_in(self, namespace: str, name: str, *args: object) -> Any:
        """The context of a job of this namespace."""
        path = f"tests.executors.functions:{name}"
        return self.bench.context({"function": path, "args": list(args)}, namespace=namespace)

    def start(self, context: Any) -> asyncio.Task[Result]:
        return asyncio.create_task(self.executor.run(context))

    async def call(self, name: str, *args: object, **kwargs: object) -> Result:
        return await self.executor.run(self.context(name, *args, **kwargs))


Body = Callable[..., Awaitable[None]]
OnBench = Callable[[Callable[[Workbench], Awaitable[None]]], None]
OnPython = Callable[..., None]


def run(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, PATIENCE_S))


@pytest.fixture
def on_bench(tmp_path: Path) -> OnBench:
    """Runs a coroutine function with a bench."""

    async def drive(body: Callable[[Workbench], Awaitable[None]]) -> None:
        async with workbench(tmp_path) as bench:
            await body(bench)

    return lambda body: run(drive(body))


@pytest.fixture
def on_python(tmp_path: Path) -> OnPython:
    """Runs a coroutine function with a bench for Python functions."""

    async def drive(body: Body, slots: int, options: dict[str, Any]) -> None:
        async with workbench(tmp_path) as bench:
            code = options.pop("code", None)
            executor = PythonExecutor(**{"grace_s": 0.5, **options})
            if code is not None:
                executor.keep_code(code)
            executor.attach(bench.spawn, slots)
            try:
                await body(PythonBench(bench, executor))
            finally:
                await executor.close()

    return lambda body, slots=2, **options: run(drive(body, slots, options))
