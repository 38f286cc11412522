"""Tests that share something dear are run by one process, which makes it once."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARING = """\
import os
import pytest

@pytest.fixture(scope="module")
def dear():
    with open({log!r}, "a") as log:
        log.write("dear\\n")

@pytest.mark.parametrize("number", range(6))
def test_with_it(dear, number):
    assert number >= 0

@pytest.mark.xdist_group("marked")
@pytest.mark.parametrize("number", range(6))
def test_marked(number):
    with open({log!r}, "a") as log:
        log.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")

@pytest.mark.parametrize("number", range(6))
def test_without(number):
    assert number >= 0
"""


def test_what_a_module_shares_is_made_once(tmp_path: Path) -> None:
    log, page = tmp_path / "log", tmp_path / "test_sharing.py"
    page.write_text(SHARING.format(log=str(log)))
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.conftest",
            "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={tmp_path}",
            "--numprocesses=2", "--dist=loadgroup", "--verbose", str(page),
        ],
        cwd=ROOT, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "18 passed" in done.stdout, done.stdout + done.stderr
    said = log.read_text().split()
    assert said.count("dear") == 1
    assert len({word for word in said if word.startswith("gw")}) == 1
    assert {"[gw0]", "[gw1]"} <= set(done.stdout.split())
