"""A test that fails by luck is named and counted; one that fails twice makes the run red."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.second_try import without_group

ROOT = Path(__file__).resolve().parents[2]

# Fails the first time it runs in a folder, and passes from then on.
LUCKY = """
def test_lucky_{number}(request):
    mark = request.path.with_name("ran-{number}")
    seen = mark.exists()
    mark.touch()
    assert seen
"""
GROUPED = "import pytest\n\n@pytest.mark.xdist_group('one')" + LUCKY.format(number=0)
BROKEN = "def test_broken():\n    assert False\n"


def tried(folder: Path, *bodies: str, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """Runs tests, then gives the failed ones their second try."""
    (folder / "test_luck.py").write_text("\n".join(bodies))
    (folder / "conftest.py").write_text("from tests.support.second_try import Record\n" + PLUG)
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT}\nmarkers = xdist_group\n")
    env = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    first = [sys.executable, "-m", "pytest", "-q", *options]
    assert subprocess.run(first, cwd=folder, env=env, check=False).returncode != 0
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.second_try"],
        cwd=folder, env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


PLUG = """
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record(config))
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2", "--dist=loadgroup")])
def test_what_passes_alone_is_named_and_the_run_is_green(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    code, said = tried(tmp_path, GROUPED, LUCKY.format(number=1), options=options)
    assert code == 0, said
    assert "flaky: test_luck.py::test_lucky_0\n" in said
    assert "second try: 2 flaky, 0 failed" in said


def test_what_fails_twice_is_red(tmp_path: Path) -> None:
    code, said = tried(tmp_path, LUCKY.format(number=0), BROKEN)
    assert (code, "failed twice: test_luck.py::test_broken" in said) == (1, True)


def test_more_than_three_are_red(tmp_path: Path) -> None:
    code, said = tried(tmp_path, *(LUCKY.format(number=n) for n in range(4)))
    assert (code, "4 tests failed, more than 3" in said) == (1, True)


def test_a_run_that_ended_otherwise_is_red(tmp_path: Path) -> None:
    """The list of an earlier run counts for nothing."""
    assert tried(tmp_path, LUCKY.format(number=0))[0] == 0
    code, said = tried(tmp_path, "import no_such_module\n")
    assert (code, "without a list of failed tests" in said) == (1, True)


@pytest.mark.parametrize("name", ["t.py::test", "t.py::test[a]", "t.py::test[a@b]"])
def test_only_the_group_is_cut_from_a_name(name: str) -> None:
    assert without_group(name) == without_group(f"{name}@tests/t.py") == name
