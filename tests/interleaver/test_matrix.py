"""Every command against every other, under drawn schedules."""

import pytest

from tests.interleaver.conftest import Theatre
from tests.interleaver.matrix import COMMANDS, scenes

# `make interleave` draws more, and follows each of them to the end of all jobs.
SEEDS = 1
TO_THE_END = 10  # one pair in so many


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_bears_every_other(theatre: Theatre, command: str) -> None:
    for number, scene in enumerate(scenes()):
        if scene.name.startswith(f"{command} × "):
            seeds = range(number * SEEDS, (number + 1) * SEEDS)
            to_the_end = number % TO_THE_END == 0
            theatre.run(theatre.explorer.draw(scene, seeds, to_the_end))
