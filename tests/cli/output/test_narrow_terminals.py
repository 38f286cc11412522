"""What people see on a terminal of 80 columns: whole values, and what failed in sight."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.program import MAX_S, Program

WIDTH = 80
LINES = 24
STYLE = re.compile(r"\x1b\[[0-9;]*m")
MOVE = re.compile(r"(\x1b\[[0-9;?]*[a-zA-Z])+")  # a view is drawn again


def test_a_workflow_is_one_readable_line(up: Program, tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    jobs = "\n".join(f"  j{number}: {{run: [sleep, '600']}}" for number in range(103))
    file.write_text(f"name: nightly build of everything for every platform\njobs:\n{jobs}\n")
    number = up.text("workflows", "submit", str(file))
    up.text("workflows", "cancel", number, "--reason", "tomorrow again, with the new machines")
    up("workflows", "watch", number)
    header, *rows = filter(None, on_terminal(up, "workflows", "--name", _name(file)))
    assert header.split()[:4] == ["id", "state", "workflow", "jobs"]
    (row,) = rows
    assert row.split()[:2] == [number, "canceled"]
    assert "103/103" in row
    assert "tomorrow again" in row


def test_the_dates_of_tokens_are_whole(up: Program) -> None:
    up.text("tokens", "create", "the-ci-of-the-build-farm", "--expires", "90d")
    made = next(token for token in up.json("tokens") if token["name"] == "the-ci-of-the-build-farm")
    expires = made["expires_at"][:19].replace("T", " ")
    rows = on_terminal(up, "tokens")
    assert any(expires in row and "submitter" in row and "valid" in row for row in rows)


def test_a_long_explanation_is_broken_between_words(up: Program) -> None:
    job = up.text("submit", "--requires", "memory>=4000GiB", "--requires", "zone==eu-west", "true")
    rows = on_terminal(up, "explain", job)
    up.text("cancel", job)
    words = " ".join(rows).split()
    assert {"capability_mismatch", "rejected,"} <= set(words), rows
    indents = {len(row) - len(row.lstrip()) for row in rows if row}
    assert indents <= {0, 2, 4}, rows


def test_a_workflow_that_is_watched_shows_what_failed_and_counts_the_rest(
    up: Program, tmp_path: Path
) -> None:
    file = tmp_path / "w.yaml"
    jobs = "\n".join(f"  good{number}: {{run: 'true'}}" for number in range(40))
    jobs += "\n  bad1: {run: exit 3}\n  bad2: {run: exit 3}"
    file.write_text(f"name: mixed\njobs:\n{jobs}\n")
    number = up.text("workflows", "submit", str(file))
    up("workflows", "watch", number)
    rows = on_terminal(up, "workflows", "watch", number)
    last = max(n for n, row in enumerate(rows) if row == f"workflow {number} mixed")
    shown = [row for row in rows[last:] if row]
    assert len(shown) < LINES
    for name in ("bad1", "bad2"):
        assert any(f"{name}  failed" in row for row in shown), shown
    hidden = 40 - sum("good" in row for row in shown)
    assert hidden > 0
    assert f"… {hidden} more: {hidden} completed" in shown[-1]


def on_terminal(up: Program, *words: str) -> list[str]:
    """The lines that a command prints on a terminal of this size; each fits."""
    ours, theirs = os.openpty()
    environment = up.environment | {
        "COLUMNS": str(WIDTH), "LINES": str(LINES), "TERM": "xterm", "NO_COLOR": "1",
    }  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "windlass", *words],
        env=environment, stdout=theirs, stdin=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(theirs)
        said = b""
        while piece := _read(ours):
            said += piece
        assert process.wait(MAX_S) in (0, 1)
    os.close(ours)
    text = MOVE.sub("\n", STYLE.sub("", said.decode())).replace("\r", "")
    rows = [row.rstrip() for row in text.splitlines()]
    assert all(len(row) <= WIDTH for row in rows), rows
    return rows


def _name(file: Path) -> str:
    return file.read_text().splitlines()[0].removeprefix("name: ")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:
        return b""
