"""What the end of an engine's program means, by what its daemon knows of the container."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import run
from windlass.clock import RealClock
from windlass.worker.isolation.confinement import ConfinementFailed, Wish
from windlass.worker.isolation.container_engine import Engine, Images
from windlass.worker.isolation.container_mode import Contained, ContainerMode
from windlass.worker.keeper.kept_process import Ended, Program

# Answers `inspect` with a file; refuses the first `rm` while there is a file for that.
DOCKER = """#!/bin/sh
cd {folder}
case "$3" in
inspect) test -e state && cat state ;;
rm) echo removed >> removals; test -e busy && rm busy && exit 1; exit 0 ;;
esac
"""
STARTED = {"Status": "exited", "StartedAt": "2026-01-01T00:00:00Z", "ExitCode": 0}

Settle = Callable[[Ended, dict[str, Any] | None, bytes], Ended]


@pytest.fixture
def settle(tmp_path: Path) -> Settle:
    """Runs a program through an engine that knows this state of its container."""
    program = tmp_path / "docker"
    program.write_text(DOCKER.format(folder=tmp_path))
    program.chmod(0o755)
    engine = Engine(
        kind="docker", program=str(program), version="20.10", rootless=False,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip

    async def main(ended: Ended, output: bytes) -> Ended:
        wish = Wish(job=1, attempt=1, scratch=tmp_path)
        mode = ContainerMode(
            "docker", {}, tmp_path / "containers", ("MARK", "m"), RealClock(),
            {"SHOP": "worker", "OWN": "worker"},
        )  # fmt: skip
        mode.engine, mode.images = engine, Images(engine)
        contained = Contained(mode, wish, "box")
        given = Program(argv=("work",), env={"OWN": "job"}, cwd=str(tmp_path))
        wrapped = await contained.wrap(given)
        place = tmp_path / "containers" / wrapped.start.outside
        assert (place / "ender").exists()
        assert (place / "env").read_text().splitlines() == ["SHOP=worker", "OWN=job"]
        return await contained.settle(wrapped, ended, output)

    def settled(ended: Ended, state: dict[str, Any] | None, output: bytes = b"") -> Ended:
        if state is not None:
            (tmp_path / "state").write_text(json.dumps({**STARTED, **state}))
        try:
            return run(main(ended, output))
        finally:
            assert (tmp_path / "removals").exists()
            assert list((tmp_path / "containers").iterdir()) == []

    return settled


def test_the_exit_code_of_the_container_counts(settle: Settle) -> None:
    assert settle(Ended(0), {"ExitCode": 0}, b"").code == 0
    killed = settle(Ended(0), {"ExitCode": 137}, b"")
    assert (killed.code, killed.signal) == (None, 9)


def test_a_container_that_outlives_the_engines_program_has_not_completed(settle: Settle) -> None:
    with pytest.raises(ConfinementFailed, match="docker lost sight of work") as raised:
        settle(Ended(0), {"Status": "running"}, b"")
    assert raised.value.failure == "network"


def test_a_container_that_was_never_started_is_a_failure_of_its_start(settle: Settle) -> None:
    with pytest.raises(ConfinementFailed, match="cannot start work in the image box: no room"):
        settle(Ended(1), {"Status": "created", "StartedAt": "0001-01-01T00:00:00Z"}, b"no room\n")
    with pytest.raises(ConfinementFailed, match="Cannot connect"):
        settle(Ended(125), None, b"docker: Cannot connect to the Docker daemon")


def test_credentials_are_gone_when_the_image_is_here(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text(
        f'#!/bin/sh\n[ "$3" = pull ] && cp $DOCKER_CONFIG/config.json {tmp_path}/seen\n'
    )
    program.chmod(0o755)
    engine = Engine(
        kind="docker", program=str(program), version="20.10", rootless=False,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    place = tmp_path / "place"
    place.mkdir()
    run(Images(engine).provide("r.example/box", "always", place, "me:secret", str))
    assert "r.example" in (tmp_path / "seen").read_text()
    assert list(place.iterdir()) == []


def test_running_out_of_memory_is_told(settle: Settle) -> None:
    assert settle(Ended(137), {"ExitCode": 137, "OOMKilled": True}, b"").out_of_memory


def test_a_container_is_removed_however_often_that_fails(settle: Settle, tmp_path: Path) -> None:
    (tmp_path / "busy").touch()
    assert settle(Ended(3), {"ExitCode": 3}, b"").code == 3
    assert (tmp_path / "removals").read_text().count("removed") == 2
