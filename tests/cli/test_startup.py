"""Which modules a command loads: every command pays for its imports."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import Program

PROGRAM = """
import atexit, sys
from windlass.cli.app import main
atexit.register(lambda: sys.stderr.write("loaded: " + " ".join(sys.modules)))
main()
"""
CLOSED = "http://127.0.0.1:9"
HEAVY = {
    "apsw", "asyncpg", "litestar", "obstore", "rich", "starlette", "structlog", "uvicorn", "uvloop",
    "windlass.client.client", "windlass.embedded", "windlass.engine", "windlass.server",
    "windlass.store", "windlass.assembly", "windlass.worker", "windlass.workflows",
}  # fmt: skip


def loaded(program: Program, *words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], env=program.environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said, mark, modules = done.stderr.rpartition("loaded: ")
    assert mark, done.stderr
    assert "Traceback" not in said
    return set(modules.split())


def modules_of(statement: str) -> set[str]:
    shown = f"{statement}\nimport sys; sys.stdout.write(' '.join(sys.modules))"
    return set(subprocess.check_output([sys.executable, "-c", shown], text=True).split())


def test_the_version_needs_not_even_the_command_line_library(tmp_path: Path) -> None:
    modules = loaded(Program(tmp_path), "--version")
    assert modules.isdisjoint({*HEAVY, "aiohttp", "asyncio", "cyclopts", "msgspec"})
    assert len(ours(modules)) <= 12


@pytest.mark.parametrize("words", [("jobs",), ("workers",), ("queues",), ("tokens",), ("names",)])
def test_a_small_command_loads_a_transport_and_little_else(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    modules = loaded(Program(tmp_path), *words, "--server", CLOSED)
    assert modules.isdisjoint(HEAVY)
    assert "windlass.client.transport" in modules
    # The messages about jobs have backoffs, exceptions and steps, with the modules of these.
    assert len(ours(modules)) <= 42
    assert len(modules - modules_of("import cyclopts, aiohttp, msgspec")) <= 45


def test_other_commands_and_the_help_load_neither_server_nor_engine(tmp_path: Path) -> None:
    light = HEAVY - {"windlass.client.client", "windlass.workflows"}
    for words in (("submit", "--", "true"), ("workflows",), ("pools",), ("schedules",)):
        assert loaded(Program(tmp_path), *words, "--server", CLOSED).isdisjoint(light), words
    assert loaded(Program(tmp_path), "--help").isdisjoint(light - {"rich"})


def test_a_worker_of_a_server_loads_neither_engine_nor_store() -> None:
    command = "windlass.cli.commands.start.worker"
    modules = modules_of(f"import {command}, windlass.assembly.http_agent")
    others = {"apsw", "asyncpg", "uvicorn", "windlass.engine", "windlass.store"}
    assert modules.isdisjoint({*others, "windlass.server", "windlass.workflows"})


def test_a_worker_hides_its_secrets_before_it_loads_its_own_parts(tmp_path: Path) -> None:
    """It starts twice; the first start ends with the second, so it is asked what it has loaded."""
    looked = """
import os, sys
os.execve = lambda *_: sys.exit(" ".join(sys.modules))
from windlass.cli.app import run_command
run_command(["worker", "--code", "abc"])
"""
    done = subprocess.run(
        [sys.executable, "-c", looked], env=Program(tmp_path).environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    modules = set(done.stderr.split())
    assert "windlass.cli.commands.start.hidden_from_jobs" in modules, done.stderr
    assert modules.isdisjoint({"cyclopts", "aiohttp", "structlog", "uvloop", "windlass.assembly"})


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "windlass"}
