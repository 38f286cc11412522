"""`windlass call`: a function runs here, and its result is all that is printed."""

import json
import shutil
from pathlib import Path

import pytest

from windlass.cli.app import run_command

MODULE = """
from pathlib import Path

import windlass

@windlass.task
def add(left: int, right: int = 0) -> int:
    print("adding")
    windlass.current().progress(0.5)
    return left + right

@windlass.task(name="called.mail")
async def mail(to: str) -> dict:
    return {"to": to, "job": windlass.current().job}

@windlass.task
def fail():
    raise ValueError("no luck")

@windlass.task
def children():
    windlass.current().submit(add, 1)

@windlass.task
def steps() -> list[object]:
    windlass.sleep("1d")
    return [windlass.step("one", add, 1), windlass.step("two", sorted, {3, 2})]

@windlass.task
def waits():
    windlass.wait_for("paid")

@windlass.task
def makes_a_file() -> Path:
    made = windlass.current().scratch / "made.txt"
    made.write_text("made")
    return made

def unmarked():
    pass
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "called_functions.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "called_functions"


def call(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        run_command(["call", *words])
    except SystemExit as end:
        code = int(str(end.code))
    said = capfd.readouterr()
    return code, said.out, said.err


def test_its_result_is_printed_as_json(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capfd, f"{module}:add", '{"left": 1, "right": 2}')
    assert (code, json.loads(out)) == (0, 3)
    assert "adding" in err
    assert "progress: 0.5" in err
    assert call(capfd, f"{module}:add", "[40]")[1] == "40\n"
    named = call(capfd, "called.mail", '{"to": "a"}', "--import", module)
    assert json.loads(named[1]) == {"to": "a", "job": 0}


def test_an_error_shows_its_traceback_and_fails(
    module: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capfd, f"{module}:fail")
    assert (code, out) == (1, "")
    assert 'raise ValueError("no luck")' in err
    assert "windlass: ValueError: no luck" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["called_functions:add", '{"wrong": 1}'], "wrong"),
        (["called_functions:add", "{"], "JSON"),
        (["called_functions:add", "3"], "an object with arguments by name"),
        (["called_functions:nothing"], "has no nothing"),
        (["called_functions:unmarked"], "marked with @windlass.task"),
        (["no_such_module:f"], "no_such_module:f cannot be called here: ModuleNotFoundError"),
        (["no_such.module:f"], "run it where its module is found"),
        (["add"], "package.module:function"),
    ],
)
def test_what_cannot_be_called_is_a_mistake_of_the_caller(
    words: list[str], message: str, module: str, capfd: pytest.CaptureFixture[str]
) -> None:
    del module
    code, out, err = call(capfd, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_there_is_no_queue_to_submit_to(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = call(capfd, f"{module}:children")
    assert code == 1
    assert "runs without a queue" in err
    code, _, err = call(capfd, f"{module}:waits")
    assert code == 1
    assert "(wait_for paid)" in err


def test_steps_run_and_sleeps_are_skipped(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capfd, f"{module}:steps")
    assert (code, json.loads(out)) == (0, [1, [2, 3]])
    assert "not waiting 86400 s" in err


def test_a_file_that_it_returns_stays(module: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capfd, f"{module}:makes_a_file")
    assert code == 0
    made = Path(json.loads(out)["$file"])
    assert made.read_text() == "made"
    shutil.rmtree(made.parent)
