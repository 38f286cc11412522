"""One installation for all tests of the command line."""

from collections.abc import Iterator

import pytest

from tests.cli.program import Program


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """`windlass up` with one worker, and the commands that find it."""
    program = Program(tmp_path_factory.mktemp("up"))
    process = program.start("up", "--port", "0", "--workers", "1", "--slots", "2")
    with process:
        assert process.stdout is not None
        assert "windlass is up at http://127.0.0.1:" in process.stdout.readline()
        yield program
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
