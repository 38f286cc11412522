"""Every pair with a story: all schedules with one break, and some drawn ones."""

import pytest

from tests.interleaver.conftest import Theatre
from tests.interleaver.explore import Scene
from tests.interleaver.pairs import RARE, SCENES
from tests.support.forms import LONG

SEEDS = range(2)


@pytest.mark.parametrize("scene", [*SCENES, *(RARE if LONG else ())], ids=lambda scene: scene.name)
def test_nothing_is_lost_stuck_or_deadlocked(theatre: Theatre, scene: Scene) -> None:
    theatre.run(theatre.explorer.explore(scene, SEEDS))
