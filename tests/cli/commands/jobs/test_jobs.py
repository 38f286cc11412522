"""Commands about jobs, against a running installation."""

import json
import signal
from pathlib import Path

from tests.cli.program import Program


def test_run_prints_the_log_and_exits_with_the_code_of_the_job(up: Program) -> None:
    good = up("run", "--", "sh", "-c", "echo out; echo err >&2")
    assert good.returncode == 0
    assert set(good.stdout.split()) == {"out", "err"}
    bad = up("run", "--", "sh", "-c", "echo before; exit 7")
    assert bad.returncode == 7
    assert bad.stdout.startswith("before\n")


def test_a_job_from_submit_to_its_log(up: Program) -> None:
    number = up.text("submit", "--label", "kind=greeting", "--name", "hello", "--", "echo", "hi")
    assert number.isdigit()
    assert up.text("logs", "-f", number) == "hi"
    shown = up.json("show", number)
    assert shown["args"] == {"argv": ["echo", "hi"]}
    assert shown["labels"] == {"kind": "greeting"}
    assert ["isolation", "process"] in [
        line.split() for line in up.text("show", number).splitlines()
    ]
    (listed,) = up.json("jobs", "--label", "kind=greeting")
    assert listed["id"] == int(number)
    table = up.text("jobs", "--label", "kind=greeting")
    assert "hello" in table


def test_who_gives_no_timeout_is_told_of_the_default(up: Program) -> None:
    told = "timeout: 30 min, the default; --timeout to change, or --timeout none"
    for words in (("submit",), ("submit", "--count", "2"), ("run",)):
        done = up(*words, "--", "true")
        assert told in done.stderr.splitlines()
        assert told not in done.stdout
        for own in ("5m", "none"):
            assert "timeout" not in up(*words, "--timeout", own, "--", "true").stderr
    assert "timeout" not in up("run", "--quiet", "--", "true").stderr
    shown = {
        ("--timeout", "5m"): (300.0, "job", "5 min"),
        ("--timeout", "none"): (None, "job", "none"),
        (): (1800.0, "default", "30 min, the default; --timeout to change"),
        ("--queue", "live"): (None, None, None),
        ("--queue", "slow"): (7200.0, "queue", "2 h, as queue slow says; --timeout to change"),
        ("--queue", "open"): (None, None, "none"),
    }
    up.text("queues", "limit", "slow", "--timeout", "2h")
    up.text("queues", "limit", "open", "--timeout", "none")
    limits = {row["name"]: row["timeout"] for row in up.json("queues")}
    assert (limits["default"], limits["open"], limits["slow"]) == (None, "none", 7200.0)
    assert "2 h" in up.text("queues")
    for flags, (seconds, source, text) in shown.items():
        number = up.text("submit", *flags, "--", "true").splitlines()[0]
        job = up.json("show", number)
        assert (job["timeout"], job["timeout_from"]) == (seconds, source)
        lines = [
            line.split(None, 1) for line in up.text("show", number).splitlines() if line.strip()
        ]
        assert [text] * bool(text) == [
            rest[0].strip() for name, *rest in lines if name == "timeout"
        ]


def test_run_exits_with_1_if_the_job_timed_out(up: Program) -> None:
    done = up("run", "--timeout", "300ms", "--retries", "0", "--", "sleep", "60")
    assert done.returncode == 1, done.stderr
    assert "failed" in done.stderr


def test_a_job_is_prioritized_canceled_and_retried(up: Program) -> None:
    up.text("queues", "pause", "held")
    (held,) = [queue for queue in up.json("queues") if queue["name"] == "held"]
    assert (held["weight"], held["paused"], held["depth"]) == (50, True, 0)
    number = up.text("submit", "--queue", "held", "--", "true")
    assert up.json("prioritize", number, "--adjustment", "4")["effective"] == 4
    assert up.text("cancel", number) == f"{number}: now canceled"
    assert up.text("cancel", number) == f"{number}: already canceled"
    again = up.text("retry", number)
    assert up.json("show", number)["superseded_by"] == int(again)
    assert up.text("queues", "resume", "held") == "queue held is now open"
    assert up("logs", "-f", again).returncode == 0
    assert up.json("show", again)["supersedes"] == int(number)


def test_what_is_wrong_is_said_with_its_own_exit_code(up: Program) -> None:
    for words, code, said in (
        (("show", "999999"), 4, "job 999999"),
        (("cancel", "999999"), 4, ""),
        (("cancel",), 2, "job ids"),
        (("submit",), 2, "a command after --"),
        (("submit", "--task", "shell", "--args", "{"), 2, "JSON"),
        (("submit", "--task", "shell", "--args", "@/nowhere"), 2, "readable file"),
        (("submit", "--timeout", "soon", "--", "true"), 2, "timeout"),
        (("retry", up.text("submit", "--after", "1", "--", "true")), 5, ""),
    ):
        done = up(*words)
        assert done.returncode == code, (words, done.stderr)
        assert said in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr


def test_artifacts_are_listed_and_fetched(up: Program, tmp_path: Path) -> None:
    args = {"argv": ["sh", "-c", "echo hi > 'a file?.txt'"], "artifacts": ["*.txt"]}
    number = up.text("submit", "--task", "shell", "--args", json.dumps(args))
    assert up("logs", "-f", number).returncode == 0
    (shown,) = up.json("artifacts", number)["artifacts"]
    assert (shown["name"], shown["size"]) == ("a file?.txt", 3)
    assert "a file?.txt" in up.text("artifacts", number)
    target = tmp_path / "kept.txt"
    assert up.text("artifacts", number, "a file?.txt", "--output", str(target)) == str(target)
    assert target.read_text() == "hi\n"
    missing = up("artifacts", number, "other", "--output", str(tmp_path / "none"))
    assert missing.returncode == 4, missing.stderr
    assert list(tmp_path.iterdir()) == [target]


def test_an_interrupted_command_ends_without_a_traceback(up: Program) -> None:
    number = up.text("submit", "--", "sh", "-c", "echo on; exec sleep 1000")
    with up.running("logs", "-f", number) as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "on\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 130
    up.text("cancel", number)


def test_a_command_keeps_artifacts_and_starts_with_those_of_another_job(up: Program) -> None:
    script = 'echo "$GREETING" > a.txt'
    made = up.text(
        "submit", "--artifact", "*.txt", "--env", "GREETING=hi", "--", "sh", "-c", script
    )
    taken = up("run", "--input", f"{made}/a.txt=in/b.txt", "--", "cat", "in/b.txt")
    assert (taken.returncode, taken.stdout) == (0, "hi\n"), taken.stderr


def test_a_command_starts_with_files_that_were_sent_with_it(up: Program, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hi\n")
    words = ("--input", f"{tmp_path}/a.txt", "--input", f"{tmp_path}/a.txt:in/b.txt")
    taken = up("run", *words, "--", "cat", "a.txt", "in/b.txt")
    assert (taken.returncode, taken.stdout) == (0, "hi\nhi\n"), taken.stderr
    outside = up("submit", "--input", f"{tmp_path}/a.txt:../b.txt", "--", "true")
    assert outside.returncode == 2
    assert "a path below the working directory" in outside.stderr
