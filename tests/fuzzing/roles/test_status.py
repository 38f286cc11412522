"""`windlass fuzz status` in every state of a pipeline, on a terminal and through a pipe."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from windlass_fuzz.findings.record import Finding, State
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.roles.build_steps import BuildSteps
from windlass_fuzz.roles.fuzz_steps import FuzzSteps
from windlass_fuzz.state.documents import BuildQueue, Entry
from windlass_fuzz.state.pipeline import Pipeline

WIDTH = 80
STYLE = re.compile(r"\x1b\[[0-9;]*m")
QUEUED = [f"{number:040x}" for number in range(1, 14)]
FAILED = f"{0xBAD:040x}"
OLD, NEW = f"{0xA:040x}", f"{0xB:040x}"
HOLDER = "a-machine-with-a-very-long-name.somewhere.example.org:4711 (job 17)"
TITLE = "heap-buffer-overflow in " + "::".join(["a_namespace"] * 12)


async def fill(world: World) -> None:
    """Puts something into every stage."""
    other = Pipeline(world.bucket, "scripted", world.pipeline.runtime, HOLDER)
    await world.pipeline.queue.update(lambda _: BuildQueue(tuple(QUEUED), (), (FAILED,)))
    await world.pipeline.schedule.update(lambda _: (Entry(OLD, 3), Entry(NEW, 0)))
    await BuildSteps(other).take(600_000)
    for commit in (OLD, NEW):
        await world.bucket.put(f"solvers/scripted/builds/production/{commit}.tar.gz", b"")
    await FuzzSteps(other).select(600_000)
    states: tuple[State, ...] = ("open", "closed")
    for number, state in enumerate(states, 1):
        key = f"{number}" * 16
        finding = Finding(
            key=key, title=TITLE, state=state, engine="command", command=[], input="input",
            size=1, shown=5, tried=5, found_in=NEW, found_at_ms=0, introduced_by=OLD, last_good="x",
        )  # fmt: skip
        await FindingStore(world.pipeline).update(key, lambda _, new=finding: new)  # type: ignore[misc]


def on_a_terminal(fuzz: Commands, *words: str) -> list[str]:
    """Returns the output on a terminal of 80 columns, without colours."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "windlass", "fuzz", *words], cwd=fuzz.world.folder,
        env=fuzz.env | {"COLUMNS": str(WIDTH), "TERM": "xterm"}, stdout=theirs,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 65_536):
            said += chunk
    except OSError:
        pass  # that is how the end of a terminal is told
    finally:
        os.close(ours)
        assert process.wait(60) == 0
    return STYLE.sub("", said.decode()).splitlines()


def test_a_busy_pipeline_fits_a_terminal_and_is_whole_in_a_pipe(tmp_path: Path) -> None:
    world = World(tmp_path)
    run(fill(world))
    fuzz = Commands(world)
    shown = on_a_terminal(fuzz, "status", "scripted")
    assert max(map(len, shown)) <= WIDTH
    assert shown[2].strip() == "queue 13 ─┬─► built 0 ──► schedule 2 ──► findings 1 open, 1 closed"
    assert shown[3].rstrip().endswith("└─► failed 1")
    assert shown[2].index("┬") == shown[3].index("└")
    code, piped, _ = fuzz.run("status", "scripted")
    assert (code, "\x1b" in piped) == (0, False)
    for words in (
        f"queue     {QUEUED[0][:12]}  being built by {HOLDER}, ",
        f"          {' '.join(commit[:12] for commit in QUEUED[1:6])}\n",
        "          and 2 more\n",
        f"failed    {FAILED[:12]}\n",
        "windlass fuzz builder log scripted COMMIT shows why\n",
        "windlass fuzz queue retry scripted COMMIT builds it again\n",
        f"schedule  {OLD[:12]}  ███ 3\n",
        f"          {NEW[:12]}  never fuzzed  being fuzzed by {HOLDER}, ",
        f"findings  {'1' * 12}  {TITLE}  since {OLD[:12]}\n",
    ):
        assert words in piped, (words, piped)
    assert not any(line != line.rstrip() for line in piped.splitlines())


def test_list_and_status_agree_about_a_bug_that_is_older_than_all_builds(tmp_path: Path) -> None:
    world = World(tmp_path)
    old = Finding(
        key="1" * 16, title=TITLE, engine="command", command=[], input="input", size=1, shown=5,
        tried=5, found_in=NEW, found_at_ms=0, introduced_by=OLD,
    )  # fmt: skip
    run(FindingStore(world.pipeline).update(old.key, lambda _: old))
    fuzz = Commands(world)
    for words in (("status", "scripted"), ("findings", "list", "scripted")):
        _, said, _ = fuzz.run(*words)
        (line,) = [line for line in said.splitlines() if TITLE in line]
        assert "older" in line
        assert OLD[:12] not in line


def test_an_empty_pipeline_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    code, said, _ = Commands(world).run("status", "scripted")
    assert code == 0
    assert "queue 0 ─┬─► built 0 ──► schedule 0 ──► findings 0 open, 0 closed" in said
    assert "checked   never\n" in said
    assert "coverage  no map yet\n" in said
    shown = Commands(world).ask("status", "scripted")
    assert (shown["queue"], shown["schedule"], shown["findings"]) == ([], [], [])
