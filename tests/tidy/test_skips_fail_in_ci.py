"""In CI a skipped test is a failed test; elsewhere it is one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SKIPS = {
    "in_the_test": "def test_it():\n    pytest.skip('no gstreamer')\n",
    "by_a_mark": "@pytest.mark.skip(reason='no gstreamer')\ndef test_it():\n    pass\n",
    "in_a_fixture": (
        "@pytest.fixture\ndef part():\n    pytest.skip('no gstreamer')\n\n"
        "def test_it(part):\n    pass\n"
    ),
    "of_a_module": "pytest.skip('no gstreamer', allow_module_level=True)\n",
}


def outcome(folder: Path, body: str, ci: str) -> tuple[int, str]:
    page = folder / "test_skipping.py"
    page.write_text(f"import pytest\n\n{body}")
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-c", os.devnull, f"--rootdir={folder}", str(page)],
        cwd=ROOT,
        env={**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("way", SKIPS)
def test_a_skip_fails_in_ci(way: str, tmp_path: Path) -> None:
    code, output = outcome(tmp_path, SKIPS[way], "true")
    assert code in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
    assert "a skip fails in CI: " in output
    assert "no gstreamer" in output


def test_a_skip_elsewhere_is_a_skip(tmp_path: Path) -> None:
    code, output = outcome(tmp_path, SKIPS["in_the_test"], "")
    assert (code, "1 skipped" in output) == (pytest.ExitCode.OK, True)


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    body = "@pytest.mark.xfail\ndef test_it():\n    assert False\n"
    code, output = outcome(tmp_path, body, "true")
    assert (code, "1 xfailed" in output) == (pytest.ExitCode.OK, True)
