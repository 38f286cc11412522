"""`windlass top`: queues, workers, rates and jobs, once and as a live view."""

import io
import os
import pty
import subprocess
import sys

import msgspec
from rich.console import Console

from tests.cli.program import Program
from windlass.cli.commands.fleet.top import Frame, Rates, draw
from windlass.messages.jobs import Job
from windlass.messages.workers import QueueInfo, WorkerInfo


def test_one_frame_shows_queues_workers_rates_and_jobs(up: Program) -> None:
    up.text("run", "--", "true")
    waiting = up.text(
        "submit", "--queue", "of-top", "--delay", "1h", "--", "echo", "bad\x1b]0;x\x07"
    )
    shown = up.text("top", "--once")
    worker = up.json("workers")[0]["name"]
    head, *_ = shown.splitlines()
    assert " of 2 slots busy; last minute: " in head
    assert worker in shown
    assert "default" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith(f"{waiting} ")]
    assert r"bad\x1b]0;x\x07" in line
    assert "\x1b" not in shown
    frame = up.json("top")
    assert frame["rates"]["completed"] >= 1
    assert frame["rates"]["submitted"] >= frame["rates"]["completed"]
    assert int(waiting) in {job["id"] for job in frame["jobs"]}
    up.text("cancel", waiting)


def test_a_terminal_that_cannot_redraw_gets_one_frame(up: Program) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "windlass", "top"]
    environment = {**up.environment, "TERM": "dumb"}
    with subprocess.Popen(words, env=environment, stdin=theirs, stdout=theirs) as drawing:
        os.close(theirs)
        assert drawing.wait(60) == 0
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert " of 2 slots busy; last minute: " in shown
    assert "\x1b" not in shown


def test_an_empty_installation_is_drawn_too() -> None:
    assert draw(Frame([], [], Rates(60), []), 80).renderables


def test_a_small_terminal_shows_a_part_of_every_table(up: Program) -> None:
    job = msgspec.convert(up.json("show", up.text("submit", "--", "true")), Job)
    queues = [QueueInfo(f"q{n:02}", 50, False, depth=n, running=n) for n in range(40)]
    workers = [worker(f"w{n:02}", "busy", n) for n in range(40)]
    frame = Frame(queues, workers, Rates(60), [job] * 40)
    for height in (24, 50):
        console = Console(width=80, file=io.StringIO())
        with console.capture() as shown:
            console.print(draw(frame, 80, height))
        lines = shown.get().splitlines()
        assert height - 4 <= len(lines) <= height
        assert any(line.startswith("q39 ") for line in lines)
        assert any(line.startswith("w39 ") for line in lines)
        assert sum(line.startswith(f"{job.id} ") for line in lines) >= 6
        assert any("more queues" in line for line in lines)


def test_slots_of_workers_that_are_away_do_not_count() -> None:
    workers = [worker("here", "busy", 1), worker("gone", "offline", 0)]
    head = draw(Frame([], workers, Rates(60), []), 80).renderables[0]
    assert "1 of 4 slots busy" in str(head)


def worker(name: str, status: str, held: int) -> WorkerInfo:
    seen = "2026-01-02T03:04:05.678Z"
    return WorkerInfo(
        id=1, name=name, status=status, incarnation=1, slots=4, held=held, last_seen=seen,
        enrolled_at=seen, reason=None, static={}, dynamic={}, metadata={},
    )  # fmt: skip
