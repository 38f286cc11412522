"""`windlass top`: queues, workers, rates and jobs, once and as a live view."""

from tests.cli.program import Program
from windlass.cli.output.live.top_view import Frame, Rates, draw


def test_one_frame_shows_queues_workers_rates_and_jobs(up: Program) -> None:
    up.text("run", "--", "true")
    waiting = up.text(
        "submit", "--queue", "of-top", "--delay", "1h", "--", "echo", "bad\x1b]0;x\x07"
    )
    shown = up.text("top", "--once")
    worker = up.json("workers")[0]["name"]
    head, *_ = shown.splitlines()
    assert " of 2 slots busy; in 1 min: " in head
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


def test_an_empty_installation_is_drawn_too() -> None:
    assert draw(Frame([], [], Rates(60), [])).renderables
