"""`windlass events`, and what a server logs of them."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.program import Program


def test_the_event_log_is_printed_and_filtered(up: Program) -> None:
    job = up.text("submit", "--", "true")
    assert up("run", "--", "true").returncode == 0
    lines = up.text("events", "--job", job, "--kind", "job").splitlines()
    assert lines[0].endswith(f"Z [FSM] Job {job}: NEW → QUEUED (reason: Submitted)")
    shown = [json.loads(line) for line in up.text("events", "--last", "2", "--json").splitlines()]
    assert len(shown) == 2
    assert [e["seq"] for e in shown] == sorted(e["seq"] for e in shown)
    later = up.text("events", "--after", str(shown[0]["seq"]), "--json")
    assert json.loads(later.splitlines()[0]) == shown[1]
    unknown = up("events", "--kind", "jbo")
    assert (unknown.returncode, "did you mean job?" in unknown.stderr) == (2, True)
    (worker,) = up.json("workers")
    by_name = up.text("events", "--worker", worker["name"], "--kind", "worker")
    assert up.text("events", "--worker", str(worker["id"]), "--kind", "worker") == by_name
    assert by_name
    assert up("events", "--worker", "nobody").returncode != 0


def test_followed_events_go_on_until_they_are_interrupted(up: Program) -> None:
    assert up("run", "--", "true").returncode == 0
    with up.running("events", "--follow", "--last", "1", "--state", "completed") as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert up("run", "--", "true").returncode == 0
        second = process.stdout.readline()
        assert all("→ COMPLETED" in line for line in (first, second))
        assert first != second
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130


def test_a_server_logs_what_happens_and_stops_while_a_worker_waits(tmp_path: Path) -> None:
    """As JSON with facts, the worker by name; without a traceback, within two seconds."""
    program = Program(tmp_path / "data")
    place = ("--store", f"sqlite://{tmp_path}/w.db", "--blobs", f"file://{tmp_path}/blobs")
    with (tmp_path / "log").open("w+") as log:
        words = ("server", *place, "--listen", "127.0.0.1:0", "--log-format", "json")
        server = subprocess.Popen(
            [sys.executable, "-m", "windlass", *words],
            env=program.environment, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        try:
            assert server.stdout is not None
            assert "windlass server at" in server.stdout.readline()
            code = program.text("workers", "code")
            with program.running("worker", "--name", "w0", "--code", code, "--log-level", "off"):
                assert program("run", "--", "true").returncode == 0
                server.send_signal(signal.SIGTERM)
                assert server.wait(2) == 0
        finally:
            server.kill()
            server.communicate()
        log.seek(0)
        entries = [json.loads(line) for line in log]
    (assigned,) = [e for e in entries if e.get("to") == "assigned"]
    assert assigned["event"] == ("[FSM] Job 1: QUEUED → ASSIGNED (reason: Assigned to worker w0)")
    facts = {"level": "info", "kind": "job", "job": 1, "attempt": 1, "worker": "w0"}
    assert facts.items() <= assigned.items()
    assert any(e["event"].startswith("[Health] Worker w0 enrolled") for e in entries)
    assert {e["level"] for e in entries} == {"info"}


def test_escapes_in_a_reason_are_harmless_in_text_and_valid_in_json(up: Program) -> None:
    reason = "no\x1b]52;c;AAAA\x07 \x7f \x9b2J\n2026-01-01 [FSM] Job 9: forged"
    job = up.text("submit", "--requires", "never == 1", "--", "true")
    assert up("cancel", job, "--reason", reason).returncode == 0
    shown = up("events", "--job", job, "--json").stdout
    events = [json.loads(line) for line in shown.splitlines()]
    assert reason in [event["reason"] for event in events]
    told = up("events", "--job", job).stdout
    assert len(told.splitlines()) == len(events)
    for text in (shown, told):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), ascii(text)
