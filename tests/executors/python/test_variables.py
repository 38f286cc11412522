"""A function that misses an environment variable is told how its worker passes it."""

import pytest

from tests.executors.conftest import OnPython, PythonBench
from windlass.executors.python.functions import advise, missing_variable

NAME = "WINDMILL_URL"
SECRET = "postgresql://ann:hunter2@db"
PASSES = f"the worker has {NAME} but does not pass it to jobs: start it with --pass-env {NAME}"
NEITHER = f"the worker has no {NAME} either: set it where the worker starts, and start it with"
MODULE = "tests.executors.variable_functions"


@pytest.mark.parametrize("known", [True, False])
def test_the_failure_names_the_option_of_the_worker(
    on_python: OnPython, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    monkeypatch.delenv(NAME, raising=False)

    async def body(python: PythonBench) -> None:
        if known:
            monkeypatch.setenv(NAME, SECRET)  # of this process, which is the worker
        for function, ahead in (
            ("look", f"KeyError: '{NAME}'"), ("look_async", f"KeyError: '{NAME}'"),
            ("look_wrapped", "RuntimeError: the settings are incomplete"),
        ):  # fmt: skip
            end = await python.call(f"{MODULE}:{function}", NAME)
            assert (end.outcome, end.failure) == ("failed", "execution")
            assert end.message is not None
            assert end.message.startswith(f"{ahead}; {PASSES if known else NEITHER}")
            assert SECRET not in repr(end)
        end = await python.call("tests.executors.needy_module:get")
        assert end.message is not None
        assert (PASSES if known else NEITHER) in end.message
        assert SECRET not in repr(end)

    on_python(body)


def test_other_failures_get_no_advice(on_python: OnPython, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(python: PythonBench) -> None:
        monkeypatch.setenv(NAME, SECRET)
        end = await python.call(f"{MODULE}:look_elsewhere", NAME)
        assert end.message == f"KeyError: '{NAME}'"
        end = await python.call(f"{MODULE}:look", "WINDLASS_TOKEN")
        assert end.message == "KeyError: 'WINDLASS_TOKEN'"

    on_python(body)


@pytest.mark.parametrize(
    "text",
    [
        f"{NAME} not found. Declare it as envvar or define a default value.",
        f'Environment variable "{NAME}" not set',
        f"Set the {NAME} environment variable",
        f"Config '{NAME}' is missing, and has no default.",
    ],
)
def test_what_settings_libraries_say_is_understood(text: str) -> None:
    assert missing_variable(ValueError(text)) == NAME
    assert missing_variable(KeyError(text)) == NAME


def test_the_advice_is_about_names_alone() -> None:
    assert missing_variable(ValueError("Set the table")) is None
    assert missing_variable(ValueError()) is None
    assert advise(None, {NAME: SECRET}) == ""
    assert advise(NAME, {NAME: SECRET}) == f"; {PASSES}"
