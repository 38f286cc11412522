"""docs/ARCHITECTURE.md is true: what it names exists, and a job takes the way it describes."""

import ast
import asyncio
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from tests.cli.program import Done, run_here
from tests.support.running import run
from tests.support.running_server import running_server
from windlass.client.gateway import HttpGateway, WorkerToken
from windlass.client.transport import Transport
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.access.rights import Role
from windlass.executors.loading import load_executors
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.options import WorkerOptions

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "windlass"
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
PAGES = [PAGE, *sorted((ROOT / "docs" / "architecture").glob("*.md"))]

PLACE = re.compile(r"`([\w./*-]+?(?:\.(?:py|sql)|/))(?:: ([\w.]+))?`")
FOLDER = re.compile(r"Paths are below\s+`src/windlass/([\w/]+)/`")
TABLE = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?(\w+)", re.MULTILINE)
LIFE = "## The life of a job\n"

MAX_WORDS = 2_500
MAX_TEST_MS = 60_000


def places(text: str) -> list[tuple[str, str]]:
    """Returns the paths that a text names, each with the name inside it, if one is given."""
    return [(found[1], found[2] or "") for found in PLACE.finditer(text)]


def complaints(text: str) -> list[str]:
    """Returns what a page names and the source does not have.

    A path may leave out the folder that the page names, or the folder of the path before it.
    """
    below = FOLDER.search(text)
    bases = [SOURCE, ROOT, *([SOURCE / below[1]] if below else [])]
    before = SOURCE
    found = []
    for path, name in places(text):
        files = [one for base in [*bases, before] for one in base.glob(path)]
        if not files:
            found.append(f"{path} does not exist")
            continue
        before = files[0].parent
        if name and not any(name in names_in(one) for one in files):
            found.append(f"{path} has no {name}")
    return found


@cache
def names_in(path: Path) -> set[str]:
    """Returns the dotted names of the functions, classes and values that a file defines."""
    return set(_names(ast.parse(path.read_text()), ""))


def _names(node: ast.AST, within: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield within + child.name
            yield from _names(child, f"{within}{child.name}.")
        elif isinstance(child, ast.Assign | ast.AnnAssign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            yield from (within + one.id for one in targets if isinstance(one, ast.Name))


def steps(text: str) -> list[str]:
    """Returns the functions that the table about a job's life names, in its order."""
    section = text.partition(LIFE)[2].partition("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("|")]
    return [f"{path}: {name}" for row in rows for path, name in places(row[3])]


def first_missing(expected: list[str], calls: list[str]) -> str | None:
    """Returns the first of `expected` that was not called after those before it."""
    left = iter(calls)
    return next((step for step in expected if step not in left), None)


@contextmanager
def recorded_calls() -> Iterator[list[str]]:
    """Records each call of a function of Windlass, in all threads that begin meanwhile."""
    calls: list[str] = []
    below = f"{SOURCE}/"

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(below):
            path = frame.f_code.co_filename.removeprefix(below)
            calls.append(f"{path}: {frame.f_code.co_qualname}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def command(words: list[str], variables: dict[str, str]) -> Done:
    """Runs a command in a thread, because the server needs the loop."""
    return await asyncio.to_thread(run_here, words, variables)  # noqa: TID251


async def live_through(folder: Path) -> str:
    """Submits a job by command, lets an agent run it, and returns what `show` prints."""
    store, blobs = f"sqlite:///{folder}/jobs.db", f"file://{folder}/blobs"
    async with running_server(store, blobs=blobs) as server:
        variables = {
            "WINDLASS_SERVER": server.address,
            "WINDLASS_TOKEN": await server.token(Role.ADMIN),
        }
        submitted = await command(["submit", "--", "echo", "hi"], variables)
        assert submitted.returncode == 0, submitted.stderr
        code, _ = await server.services.access.create_code(MAX_TEST_MS)
        gateway = HttpGateway(Transport(server.address), WorkerToken(RealSecrets().secret))
        options = WorkerOptions(name="w", state=folder / "w", code=code)
        agent = Agent(gateway, options, load_executors(["shell"]), RealClock(), RealChance())
        running = asyncio.get_running_loop().create_task(agent.run())
        try:
            assert await server.services.engine.jobs.wait_ended(1, MAX_TEST_MS)
            shown = await command(["show", "1"], variables)
        finally:
            agent.stop()
            await running
            await gateway.close()
        return shown.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_pages_name_exists(page: Path) -> None:
    assert complaints(page.read_text()) == []


def test_a_job_takes_the_way_that_the_page_describes(tmp_path: Path) -> None:
    with recorded_calls() as calls:
        shown = run(live_through(tmp_path))
    assert "completed" in shown
    expected = steps(PAGE.read_text())
    assert len(expected) >= 10
    assert first_missing(expected, calls) is None


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "KNOWN_GAPS.md"])
def test_a_page_that_everybody_reads_stays_short(name: str) -> None:
    assert len((PAGE.parent / name).read_text().split()) <= MAX_WORDS


def test_the_page_about_storage_lists_every_table() -> None:
    text = (ROOT / "docs" / "architecture" / "storage.md").read_text().partition("## Tables")[2]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    schemas = [path.read_text() for path in SOURCE.glob("store/*/schema.sql")]
    tables = {name for schema in schemas for name in TABLE.findall(schema)}
    assert len(schemas) == 2
    assert len(listed) == len(set(listed))
    assert set(listed) == tables


def test_a_missing_file_or_name_is_reported() -> None:
    page = "`engine/engine.py: Engine.submit` `engine/no.py` `engine/engine.py: Engine.no` `no/`"
    assert complaints(page) == [
        "engine/no.py does not exist", "engine/engine.py has no Engine.no", "no/ does not exist",
    ]  # fmt: skip


def test_a_wrong_order_is_reported() -> None:
    assert first_missing(["a", "b"], ["a", "x", "b"]) is None
    assert first_missing(["a", "b"], ["b", "a"]) == "b"
