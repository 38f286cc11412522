"""Random commands through both databases: equal answers, equal state, equal log."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.support.moves import Move, moves
from tests.engine.support.player import Player
from tests.engine.support.rig import Rig
from tests.engine.support.rigs import Rigs
from tests.support.forms import by_form


def play_on_both(left: Rig, right: Rig, script: list[Move]) -> None:
    """Play the script on both, move by move."""
    players = [(left, Player(left)), (right, Player(right))]
    for number, move in enumerate(script):
        one, other = [rig.run(player.play(move)) for rig, player in players]
        assert one == other, f"move {number}, {move}: {left.kind} and {right.kind} answer apart"
    one, other = [rig.run(player.outcome()) for rig, player in players]
    assert one == other


@settings(max_examples=by_form(6, 30), suppress_health_check=list(HealthCheck))
@given(script=st.lists(moves, min_size=30, max_size=60))
def test_sqlite_and_postgres_do_the_same(rigs: Rigs, script: list[Move]) -> None:
    with rigs.open("memory") as left, rigs.open("postgres") as right:
        play_on_both(left, right, script)
