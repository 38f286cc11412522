"""One installation that all tests of the command line share."""

from collections.abc import Iterator

import pytest

from tests.cli.program import Program


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """`windlass up` with one worker, and the commands that find it."""
    program = Program(tmp_path_factory.mktemp("up"))
    words = ("up", "--port", "0", "--workers", "1", "--slots", "2")
    with program.running(*words) as process:
        assert process.stdout is not None
        assert "windlass is up at http://127.0.0.1:" in process.stdout.readline()
        assert program("run", "--", "true").returncode == 0  # so the worker is there
        yield program
    assert process.returncode == 0
