"""What type checkers are told about options is what tasks take."""

from windlass.tasks.option_types import CallOptions, TaskOptions
from windlass.tasks.task import OF_CALLS, OF_FUNCTIONS


def test_every_option_has_a_type_and_no_other_is_told() -> None:
    assert set(CallOptions.__annotations__) == OF_CALLS
    assert set(TaskOptions.__annotations__) == OF_FUNCTIONS
