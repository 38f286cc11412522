"""One client for a whole program: web servers with threads or a loop, notebooks, forks."""

import asyncio
import os
import queue
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from ipykernel.kernelspec import write_kernel_spec
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

import windlass
from tests.cli.program import MAX_S, Program

ROOT = Path(__file__).parents[2]
AT_ONCE = 8


def start(program: Program, module: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.cli.programs.{module}"],
        cwd=ROOT, env=program.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@contextmanager
def web(program: Program, module: str) -> Iterator[str]:
    """Yields the address of a web server, which is ended afterwards."""
    with start(program, module) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()
            process.communicate(timeout=MAX_S)


def get(address: str) -> str:
    with urlopen(address, timeout=MAX_S) as answer:
        return str(answer.read().decode())


def test_threads_of_flask_share_a_client(up: Program) -> None:
    with web(up, "flask_app") as address, ThreadPoolExecutor(AT_ONCE) as threads:
        texts = [f"request-{n}" for n in range(AT_ONCE)]
        answers = threads.map(get, [f"{address}/echo/{text}" for text in texts])
        assert [answer.strip() for answer in answers] == texts


def test_views_of_fastapi_use_both_clients(up: Program) -> None:
    ways = ("blocking", "threads", "asynchronous", "tasks")
    with web(up, "fastapi_app") as address, ThreadPoolExecutor(AT_ONCE) as threads:
        answers = threads.map(get, [f"{address}/{way}/{n}" for way in ways for n in range(2)])
        assert list(answers) == ['"completed"'] * 8


def test_a_client_works_after_a_fork_and_ends_with_its_program(up: Program) -> None:
    with start(up, "forking") as process:
        out, errors = process.communicate(timeout=MAX_S)
    assert (process.returncode, errors) == (0, "")
    assert len({int(line) for line in out.split()}) == 5


def test_a_notebook_uses_both_clients(
    up: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_kernel_spec(str(tmp_path / "python3"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    manager = KernelManager(kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(tmp_path)]))
    places = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    manager.start_kernel(env={**up.environment, "PYTHONPATH": places}, cwd=str(tmp_path))
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=MAX_S)
        cells = (
            "import windlass; client = windlass.Client(); shell = windlass.named('shell')",
            "client.submit(shell, argv=['true']).wait(timeout=60).state",
            "(await (await shell.submit_async(argv=['true'])).wait(timeout=60)).state",
            "jobs = await windlass.AsyncClient().jobs(limit=2); [job.state for job in jobs]",
        )
        shown = [run_cell(client, cell) for cell in cells]
        assert shown == [None, "'completed'", "'completed'", "['completed', 'completed']"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run_cell(client: object, code: str) -> str | None:
    """Returns what a cell shows as its value."""
    number = client.execute(code)  # type: ignore[attr-defined]
    value: str | None = None
    while True:
        try:
            message = client.get_iopub_msg(timeout=MAX_S)  # type: ignore[attr-defined]
        except queue.Empty:
            raise AssertionError(f"the kernel did not answer to {code}") from None
        if message["parent_header"].get("msg_id") != number:
            continue
        kind, content = message["msg_type"], message["content"]
        assert kind != "error", content["traceback"]
        if kind == "execute_result":
            value = content["data"]["text/plain"]
        if kind == "status" and content["execution_state"] == "idle":
            return value


def test_several_event_loops_share_an_asynchronous_client(up: Program) -> None:
    client = windlass.AsyncClient(data=up.data)

    async def submit() -> str:
        job = await client.submit("shell", argv=["true"])
        return (await job.wait(timeout=60)).state

    for _ in range(2):
        assert asyncio.run(submit()) == "completed"
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(asyncio.run, submit()) for _ in range(3)]
        assert [one.result() for one in found] == ["completed"] * 3
    asyncio.run(client.close())
