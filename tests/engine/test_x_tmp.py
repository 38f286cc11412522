from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from tests.engine.test_retention import *
from tests.engine.conftest import *
@settings(max_examples=150, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None, derandomize=False)
@given(script=st.lists(moves, min_size=20, max_size=60), pace=st.integers(1, 9))
def test_x(rigs, script, pace):
    test_at_any_time_the_rest_replays.hypothesis.inner_test(rigs, script, pace)
