"""Options that most commands share may stand before the command as well as after it."""

from pathlib import Path

import pytest

from tests.cli.program import Program
from windlass.cli.before_command import command_first

URL = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (f"--server {URL} jobs", f"jobs --server {URL}"),
        (f"--json --server={URL} jobs --limit 3", f"jobs --limit 3 --json --server={URL}"),
        ("--data d --tls-ca f worker --code c", "worker --code c --data d --tls-ca f"),
        ("--namespace n run -- echo --json", "run --namespace n -- echo --json"),
        (f"--json workers --server {URL} list", f"workers list --server {URL} --json"),
        (f"workers --server {URL} list", f"workers list --server {URL}"),
        (f"workers --server {URL}", f"workers --server {URL}"),
        ("run --json -- jobs", "run --json -- jobs"),
        ("--json --help", "--help"),
        ("--install-completion --shell bash", "--install-completion --shell bash"),
    ],
)
def test_shared_options_are_moved_behind_the_command(given: str, read: str) -> None:
    assert command_first(given.split(), lambda name: name == "workers") == read.split()


def test_a_command_gets_the_options_before_it(up: Program, tmp_path: Path) -> None:
    job = up.text("submit", "--namespace", "early", "--delay", "1h", "--", "true").strip()
    data = {"WINDLASS_DATA": str(tmp_path)}
    found = up.spawn("--data", str(up.data), "--namespace", "early", "jobs", **data)
    assert (found.returncode, job in found.stdout) == (0, True), found.stderr
    none = up.spawn("--data", str(up.data), "--namespace", "unused", "jobs", **data)
    assert none.stdout == "no jobs\n"
    listed = up.spawn("workers", "--data", str(up.data), "list", "--json", **data)
    assert (listed.returncode, listed.stdout[:1]) == (0, "["), listed.stderr
    up.text("cancel", job)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--servr x jobs", "unknown option --servr; did you mean --server?"),
        ("--limit 3 jobs", "--namespace, --json or a command; other options follow the command)"),
        ("--server", "expected --server to be followed by a value, got none"),
        ("--server --json jobs", "expected --server to be followed by a value, got none"),
        (f"--server {URL}", f"expected --server {URL} to be followed by a command, got none"),
        ("--namespace n up", "`windlass up` has no option --namespace"),
        ("--token secret jobs", "unknown option --token; set WINDLASS_TOKEN instead"),
        ("jobs --token secret", "`windlass jobs` has no option --token: set WINDLASS_TOKEN"),
        (f"--server {URL} jobs --server {URL}", "--server specified multiple times"),
    ],
)
def test_what_is_wrong_before_the_command_is_named(tmp_path: Path, words: str, said: str) -> None:
    done = Program(tmp_path).spawn(*words.split())
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert done.stderr.startswith("windlass: ")
    assert "secret" not in done.stderr
