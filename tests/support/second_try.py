"""Runs the failed tests of the last run once more, alone: `make second-try`.

A test that passes the second time is printed as `flaky: NAME`. The run counts as green if every
failed test passes, and at most `MAX_FLAKY` did so. `.ci/run` calls this after a red `make test`;
tests/conftest.py plugs `Record` into every run.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RECORD = "windlass/failed"
"""The key in pytest's cache under which a run leaves its exit status and its failed tests."""

MAX_FLAKY = 3


class Record:
    """Leaves the failed tests of a run in pytest's cache, for a second try."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failed: dict[str, None] = {}
        self._write(None)  # a run that is killed leaves no older list behind

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[without_group(report.nodeid)] = None

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._write(int(exitstatus))

    def _write(self, exitstatus: int | None) -> None:
        cache: pytest.Cache | None = getattr(self._config, "cache", None)
        if cache is not None:  # the plug-in may be off
            cache.set(RECORD, {"exit": exitstatus, "failed": list(self._failed)})


def without_group(test: str) -> str:
    """Returns the name of a test without the group that pytest-xdist appends to it."""
    name, at, group = test.rpartition("@")
    return name if at and "]" not in group else test


def recorded(folder: Path) -> list[str]:
    """Returns the tests that failed in the last run, or none if it ended in another way."""
    try:
        found = json.loads((folder / ".pytest_cache/v" / RECORD).read_text())
    except (OSError, ValueError):
        return []
    failed: list[str] = found["failed"] if found["exit"] == pytest.ExitCode.TESTS_FAILED else []
    return failed


def passes_alone(test: str, folder: Path) -> bool:
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", test]
    return subprocess.run(command, cwd=folder, check=False).returncode == pytest.ExitCode.OK


def main(folder: Path) -> int:
    failed = recorded(folder)
    if not failed:
        print("second try: the run ended without a list of failed tests; it stays red")
        return 1
    if len(failed) > MAX_FLAKY:
        print(f"second try: {len(failed)} tests failed, more than {MAX_FLAKY}; the run stays red")
        return 1
    passed = {test: passes_alone(test, folder) for test in failed}
    for test, is_flaky in passed.items():
        print(f"{'flaky' if is_flaky else 'failed twice'}: {test}")
    print(f"second try: {sum(passed.values())} flaky, {len(passed) - sum(passed.values())} failed")
    return 0 if all(passed.values()) else 1


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
