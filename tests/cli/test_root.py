"""The table of commands agrees with the commands, and `windlass --help` shows all of them."""

import pkgutil
from pathlib import Path

import pytest
from cyclopts import App

from tests.cli.program import Program
from windlass.cli.root import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_in_the_table_is_that_of_the_command(name: str) -> None:
    command = pkgutil.resolve_name(COMMANDS[name].path)
    own = command.help if isinstance(command, App) else command.__doc__.partition("\n")[0]
    assert own
    assert COMMANDS[name].help in (None, own)


def test_the_help_lists_every_command_with_its_description(tmp_path: Path) -> None:
    program = Program(tmp_path)
    said = program.text("--help", COLUMNS="160")
    assert program.text(COLUMNS="160") == said
    lines = [line.strip("│ ") for line in said.splitlines()]
    for name in COMMANDS:
        (shown,) = (line for line in lines if line.partition(" ")[0] == name)
        assert len(shown.split()) > 3, shown


def test_the_version_is_the_installed_one(tmp_path: Path) -> None:
    from importlib.metadata import version

    done = Program(tmp_path)("--version")
    assert (done.returncode, done.stdout) == (0, f"{version('windlass')}\n")
