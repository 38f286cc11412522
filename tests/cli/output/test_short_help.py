"""`--help` shows the options that people need, `--help-all` the rest."""

import os

import pytest

from tests.cli.program import run_here
from windlass.cli.output.short_help import NEEDED
from windlass.cli.root import app


def _shown(*words: str) -> str:
    done = run_here(words, {**os.environ, "COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", NEEDED)
def test_help_shows_ten_options_and_names_the_way_to_the_rest(command: str) -> None:
    short, whole = _shown(command, "--help"), _shown(command, "--help-all")
    known = {name for argument in app[command].assemble_argument_collection()
             for name in argument.names}  # fmt: skip
    assert short.startswith(f"Usage: windlass {command} ")
    assert whole.startswith(short.splitlines()[0])
    assert len(NEEDED[command]) == 10
    assert set(NEEDED[command]) <= known
    assert all(f"{name} " in short for name in NEEDED[command])
    assert f"more options: windlass {command} --help-all" in short
    assert len(short.splitlines()) < len(whole.splitlines()) / 2
    other = "--log-level" if command in ("up", "server", "worker") else "--apart"
    assert other in whole
    assert other not in short


def test_help_all_of_other_commands_is_their_help() -> None:
    assert _shown("show", "--help-all") == _shown("show", "--help")
