"""What `run`, `jobs` and `logs` tell about jobs, against a running installation."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import msgspec
import pytest

from tests.cli.program import Program
from windlass.cli.output.job_table import COLUMNS, USUAL
from windlass.cli.output.job_view import print_job
from windlass.messages.jobs import Job

MOMENT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def test_run_tells_its_id_and_why_it_waits_on_the_standard_error(up: Program) -> None:
    words = ("--requires", "memory>=8TiB", "--start-before", "1s", "--", "true")
    done = up("run", *words)
    number, *reasons = done.stderr.splitlines()
    assert re.fullmatch(r"job \d+", number)
    waits = [line for line in reasons if line.startswith(f"{number} queued: waits for a worker")]
    assert len(waits) == len(set(waits)) == 1, done.stderr
    assert done.stdout == ""
    quiet = up("run", "--quiet", *words)
    assert len(quiet.stderr.splitlines()) == 1, quiet.stderr  # that it was canceled
    fine = up("run", "--quiet", "--", "echo", "on")
    assert (fine.stdout, fine.stderr) == ("on\n", "")


def test_run_tells_a_reason_once_however_its_time_runs_down(up: Program) -> None:
    number, *reasons = up("run", "--delay", "2s", "--", "true").stderr.splitlines()
    waits = [line for line in reasons if line.startswith(f"{number} queued: waits for its start")]
    assert len(waits) == 1, reasons


def test_a_variable_of_the_caller_is_passed_by_its_name(up: Program) -> None:
    done = up("run", "--env", "OWN_WORD", "--", "printenv", "OWN_WORD", OWN_WORD="mine")
    assert done.stdout == "mine\n"
    unset = up("run", "--env", "NOT_SET_HERE", "--", "true")
    assert unset.returncode == 2
    assert "--env" in unset.stderr


def test_jobs_show_what_they_run_how_long_and_since_when(up: Program) -> None:
    up.text("run", "--label", "of=listing", "--", "sh", "-c", "echo \x1b[2J one two")
    (line,) = up.text("jobs", "--label", "of=listing").splitlines()[1:]
    assert r"echo \x1b[2J one two" in line
    header = up.text("jobs", "--label", "of=listing").splitlines()[0].split()
    assert header[:6] == ["id", "state", "command", "queue", "duration", "age"]
    table = up.text("jobs", "--label", "of=listing", "--columns", "state,exit,labels")
    assert [row.split() for row in table.splitlines()] == [
        ["state", "exit", "labels"], ["completed", "0", "of=listing"],
    ]  # fmt: skip
    made = up.text("submit", "--label", "of=refs", "--", "echo", "one two")
    for word in ({"$text": ["v", {"$result": int(made)}]}, {"$result": int(made)}):
        args = json.dumps({"argv": ["a", word]})
        up.text("submit", "--label", "of=refs", "--task", "shell", "--args", args)
    _, *rows = up.text("jobs", "--label", "of=refs", "--columns", "command").splitlines()
    shown = f"${{{{ jobs.{made}.result }}}}"
    assert [row.strip() for row in rows] == [f"a {shown}", f"a 'v{shown}'", "echo 'one two'"]
    wrong = up("jobs", "--columns", "id,stat", "--queue", "no-job-is-here")
    assert wrong.returncode == 2
    assert "did you mean state?" in wrong.stderr


def test_jobs_are_drawn_again_on_a_terminal_until_ctrl_c(up: Program) -> None:
    number = up.text("submit", "--name", "watched", "--label", "of=watch", "--", "sleep", "600")
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "windlass", "jobs", "--watch", "--label", "of=watch"]
    with subprocess.Popen(
        words, env={**up.environment, "TERM": "xterm"}, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True,
    ) as watching:  # fmt: skip
        os.close(theirs)
        _read_until(ours, b"running")
        up.text("cancel", number)
        _read_until(ours, b"canceled")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 0
    os.close(ours)
    assert "watched" in up.text("jobs", "--watch", "--label", "of=watch")  # once, without one


def _read_until(fd: int, wanted: bytes) -> None:
    seen = b""
    while wanted not in seen:
        seen += os.read(fd, 65_536)


def test_ended_jobs_are_deleted_by_their_ids(up: Program) -> None:
    up.text("run", "--label", "of=deletion", "--", "true")
    (job,) = up.json("jobs", "--label", "of=deletion")
    waiting = up.text("submit", "--delay", "1h", "--", "true")
    mixed = up("jobs", "delete", str(job["id"]), waiting)
    assert mixed.returncode == 5, mixed.stderr
    assert mixed.stdout.startswith(f"{job['id']}: deleted\n{waiting}: not deleted: ")
    assert up("jobs", "delete", str(job["id"])).returncode == 4
    assert up("jobs", "delete").returncode == 2
    assert up.json("jobs", "--label", "of=deletion") == []
    up.text("cancel", waiting)


def test_a_log_is_read_from_its_end_by_attempt_and_with_times(up: Program) -> None:
    script = "echo try $WINDLASS_ATTEMPT; for n in 1 2 3; do echo $n; done; exit 1"
    words = ("--retries", "1", "--backoff", "initial=1ms", "--label", "of=logs")
    assert up("run", *words, "--", "sh", "-c", script).returncode == 1
    (job,) = up.json("jobs", "--label", "of=logs")
    number = str(job["id"])
    assert up.text("logs", "--tail", "2", number) == "2\n3"
    assert up.text("logs", "--tail", "1", "--follow", number) == "3"
    assert up.text("logs", "--attempt", "1", number).startswith("try 1\n")
    assert up.text("logs", number).startswith("try 2\n")
    for line in up.text("logs", "--timestamps", number).splitlines():
        assert re.fullmatch(rf"{MOMENT} (try 2|\d)", line)
    assert up.text("logs", "--since", "1h", number) == up.text("logs", number)
    assert up.text("logs", "--since", "2999-01-01T00:00:00Z", number) == ""
    assert up("logs", "--since", "never", number).returncode == 2
    assert up("logs", "--tail", "-1", number).returncode == 2
    none = up("logs", "--attempt", "7", number)
    assert f"attempt 7 of job {number} does not exist" in none.stderr


def test_a_job_is_shown_with_all_that_it_was_submitted_with(up: Program) -> None:
    options = (
        "--namespace", "farm", "--label", "scene=7", "--label", "by=ann", "--key", "frame-7",
        "--key-for", "1d", "--requires", "memory>=1MiB", "--resources", "licences=2",
        "--timeout", "90", "--not-before", "2060-01-02T03:04:05Z", "--rate", "api=10/1m",
        "--prefers", "rack==7", "--apart", "disk", "--preemptible", "--capability-grace", "2h",
        "--limit", "memory=2GiB,cpu_time=90", "--kind", "render", "--retries", "1",
        "--backoff", "initial=1s,factor=2",
    )  # fmt: skip
    number = up.text("submit", *options, "--", "true")
    shown = dict(
        re.split(r"  +", line.strip(), maxsplit=1)
        for line in up.text("show", number).splitlines()
        if "  " in line
    )
    assert shown.items() >= {
        "namespace": "farm", "labels": "by=ann, scene=7", "key": "frame-7 (kept for 1 d)",
        "submitted by": "admin", "requires": "memory>=1MiB", "resources": "licences=2",
        "timeout": "1 min 30 s", "not before": "2060-01-02 03:04:05Z", "rate": "api=10/1m",
        "prefers": "rack==7", "apart": "disk", "preemptible": "yes", "capability grace": "2h",
        "limits": "memory=2GiB, cpu_time=1m30s", "kind": "render",
        "retries": "0 of 1 used; backoff initial=1s,factor=2.0",
    }.items()  # fmt: skip
    up.text("cancel", number)


def test_an_option_needs_no_code_of_its_own_to_be_shown(
    up: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    job = up.json("show", up.text("submit", "--delay", "1h", "--", "true"))
    print_job(msgspec.convert(job | {"options": {"new_option": "its value"}}, Job))
    assert re.search(r"^new option +its value *$", capsys.readouterr().out, re.MULTILINE)
    up.text("cancel", str(job["id"]))


def test_progress_is_shown_while_a_job_runs(up: Program) -> None:
    job = up.json("show", up.text("submit", "--", "true"))
    running = {"state": "running", "started_at": job["created_at"], "finished_at": None}
    for progress, shown in (
        ({"done": 3, "total": 12, "text": "pages"}, "3 of 12 (25 %), pages"),
        ({"frame": 7}, '{"frame":7}'),
        ("x" * 99, "x" * 31 + "…"),
        (None, None),
    ):
        made = msgspec.convert(job | running | {"progress": progress}, Job)
        assert COLUMNS["progress"](made, 0) == shown
    ended = msgspec.convert(job | {"progress": 1, "finished_at": job["created_at"]}, Job)
    assert COLUMNS["progress"](ended, 0) is None
    assert "progress" in USUAL
