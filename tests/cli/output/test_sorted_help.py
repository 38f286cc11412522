"""`--help` shows at most twelve options, those that people set first; `--help-all` shows all."""

import os
from collections.abc import Iterator

import pytest
from cyclopts import App

from tests.cli.program import run_here
from windlass.cli.output.sorted_help import NEEDED
from windlass.cli.root import add_plugins, app

MAX_SHOWN = 12


def _shown(*words: str) -> str:
    done = run_here(words, {**os.environ, "COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def _options_in(text: str) -> list[str]:
    """Returns the options of a help, in order."""
    lines = (line.strip("│* ") for line in text.splitlines() if line.startswith("│"))
    return [line.split()[0] for line in lines if line.startswith("-")]


def _options_of(command: str) -> set[str]:
    """Returns the names of all options of a command."""
    _, apps, _ = app.parse_commands(command.split())
    arguments = apps[-1].assemble_argument_collection(default_parameter=app.default_parameter)
    return {name for argument in arguments for name in argument.names}


def _commands(path: str = "", group: App = app) -> Iterator[str]:
    for name in group:
        if not name.startswith("-"):
            yield f"{path} {name}".strip()
            yield from _commands(f"{path} {name}".strip(), group[name])


def test_no_help_shows_more_than_twelve_options() -> None:
    add_plugins()
    many = {
        command: len(options)
        for command in _commands()
        if len(options := _options_in(_shown(*command.split(), "--help"))) > MAX_SHOWN
    }
    assert many == {}


@pytest.mark.parametrize("command", NEEDED)
def test_help_shows_the_options_in_order_and_names_the_way_to_the_rest(command: str) -> None:
    words = command.split()
    short, whole = _shown(*words, "--help"), _shown(*words, "--help-all")
    known = _options_of(command)
    assert set(NEEDED[command]) <= known
    assert sorted(_options_in(short)) == sorted(NEEDED[command])
    assert _options_in(short)[:2] == [one for one in NEEDED[command] if one != "--server"][:2]
    assert set(NEEDED[command]) < set(_options_in(whole))
    left = len(_options_in(whole)) - len(NEEDED[command])
    assert f"{left} more options: windlass {command} --help-all" in short
    assert whole.startswith(short.splitlines()[0])
    assert "more options" not in whole


def test_help_of_a_command_with_few_options_shows_all() -> None:
    assert _shown("show", "--help-all") == _shown("show", "--help")
