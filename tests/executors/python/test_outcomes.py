"""What functions raise decides about retries: names of exceptions, Retry and Abort."""

import importlib
import json
from datetime import timedelta

import pytest

from tests.executors.conftest import OnPython, PythonBench
from windlass import Abort, Retry
from windlass.domain.lifecycle.failures import Raised
from windlass.domain.values.errors import InvalidInput
from windlass.executors.python.functions import ALIASES, MAX_NAMES, describe, names_of


def test_an_exception_goes_by_the_names_of_all_its_classes() -> None:
    class Below(json.JSONDecodeError):
        pass

    names = names_of(Below("", "", 0))
    assert {"json.decoder.JSONDecodeError", "json.JSONDecodeError", "ValueError"} <= set(names)
    assert names[-2:] == ("Exception", "BaseException")
    deep = type("E0", (Exception,), {})
    for level in range(2 * MAX_NAMES):
        deep = type(f"E{level}", (deep,), {})
    assert len(names_of(deep())) == MAX_NAMES


def test_our_own_exceptions_go_by_the_names_that_programs_import() -> None:
    error = InvalidInput("a", "b", "c")
    assert describe(error) == "windlass.InvalidInput: expected a to be b, got c"
    assert {"windlass.InvalidInput", "windlass.WindlassError", "Exception"} <= set(names_of(error))


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_function_says_how_it_goes_on(on_python: OnPython, kind: str) -> None:
    async def body(python: PythonBench) -> None:
        end = "end_as" if kind == "plain" else "end_as_async"
        again = await python.call(end, "retry")
        assert (again.outcome, again.failure, again.message) == ("failed", "execution", "busy")
        assert again.raised is not None
        assert (again.raised.asks, again.raised.after_ms) == ("retry", 60_000)
        caused = await python.call(end, "cause")
        assert (caused.failure, caused.message) == ("network", "ConnectionResetError: gone")
        assert caused.raised is not None
        assert (caused.raised.asks, caused.raised.after_ms) == ("retry", None)
        never = await python.call(end, "abort")
        assert (never.failure, never.message) == ("execution", "no such customer")
        assert never.raised is not None
        assert never.raised.asks == "abort"
        wrong = await python.call(end, "json")
        assert wrong.raised is not None
        assert wrong.raised.asks is None
        assert "json.JSONDecodeError" in wrong.raised.names

    on_python(body)


def test_a_retry_takes_every_form_of_a_duration() -> None:
    afters = ("1m", 60, "60s", timedelta(minutes=1))
    assert [Retry(after=after).after_ms for after in afters] == [60_000] * 4
    assert (Retry().after_ms, str(Retry("busy")), str(Abort("no"))) == (None, "busy", "no")
    with pytest.raises(InvalidInput, match="expected after to be a duration"):
        Retry(after="soon")
    assert Raised() == Raised((), None, None)


def test_built_in_exceptions_are_known_by_their_other_names() -> None:
    """So `retry_on: asyncio.TimeoutError` matches; every alias is one in this Python."""
    for kind, aliases in ALIASES.items():
        assert set(aliases) <= set(names_of(kind()))
        for alias in aliases:
            module, _, name = alias.rpartition(".")
            assert getattr(importlib.import_module(module or "builtins"), name) is kind
