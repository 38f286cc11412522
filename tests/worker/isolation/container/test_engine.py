"""Which engine a worker finds, what it says about it, and what failed pulls mean."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import run
from windlass.domain.values.errors import InvalidInput
from windlass.worker.isolation.container_engine import (
    Engine,
    Ran,
    auth_settings,
    engine_environment,
    failure_of,
    find_engine,
    registry_of,
)
from windlass.worker.isolation.container_mode import start_failure

PODMAN: dict[str, Any] = {
    "host": {
        "cgroupVersion": "v2", "cgroupControllers": ["cpu", "memory", "pids"],
        "security": {"rootless": True}, "serviceIsRemote": False,
    },
    "version": {"Version": "4.3.1"},
}  # fmt: skip
DOCKER: dict[str, Any] = {
    "ServerVersion": "20.10.24",
    "SecurityOptions": ["name=seccomp"],
    "MemoryLimit": True,
}


def program(folder: Path, name: str, told: object, code: int = 0) -> Path:
    """A program that answers `info`."""
    path = folder / name
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(told)}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return path


def found(setting: str, folder: Path) -> Engine | str:
    return run(find_engine(setting, {"PATH": f"{folder}:/usr/bin:/bin", "LD_PRELOAD": ""}))


def test_what_an_engine_enforces_is_what_it_says(tmp_path: Path) -> None:
    engine = found(str(program(tmp_path, "podman", PODMAN)), tmp_path)
    assert isinstance(engine, Engine)
    assert (engine.version, engine.rootless) == ("4.3.1", True)
    assert engine.enforces == {"memory", "cpus", "processes"}
    older = {**PODMAN, "host": {**PODMAN["host"], "cgroupVersion": "v1"}}
    engine = found(str(program(tmp_path, "podman", older)), tmp_path)
    assert isinstance(engine, Engine)
    assert engine.enforces == frozenset()
    assert engine.metadata["container:limits"] == []


def test_docker_without_its_daemon_is_no_engine(tmp_path: Path) -> None:
    engine = found(str(program(tmp_path, "docker", DOCKER)), tmp_path)
    assert isinstance(engine, Engine)
    assert not engine.rootless
    assert engine.enforces == {"memory"}
    away = {"ServerVersion": "", "ServerErrors": ["Cannot connect to the Docker daemon"]}
    assert found(str(program(tmp_path, "docker", away)), tmp_path) == (
        "docker: Cannot connect to the Docker daemon"
    )


def test_a_worker_says_why_it_has_no_engine(tmp_path: Path) -> None:
    assert found("off", tmp_path) == "containers are off on this worker"
    assert found("/nowhere/podman", tmp_path) == "/nowhere/podman is not installed"
    remote = {**PODMAN, "host": {**PODMAN["host"], "serviceIsRemote": True}}
    told = found(str(program(tmp_path, "podman", remote)), tmp_path)
    assert told == "podman: it runs containers on another machine"
    with pytest.raises(InvalidInput, match="podman, docker, nerdctl"):
        found("lxc", tmp_path)


def test_an_engine_sees_where_its_things_are_and_no_tokens() -> None:
    environ = {"HOME": "/h", "XDG_RUNTIME_DIR": "/r", "WINDLASS_TOKEN": "t", "AWS_SECRET": "s",
               "WINDLASS_SECRET_DB": "d", "CONTAINERS_CONF": "/c", "LD_PRELOAD": "/x"}  # fmt: skip
    assert engine_environment(environ) == {
        "HOME": "/h", "XDG_RUNTIME_DIR": "/r", "CONTAINERS_CONF": "/c",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ("Error: reading manifest 2 in r/box: manifest unknown", "configuration"),
        ("Error: unauthorized: authentication required", "configuration"),
        ("Error response from daemon: pull access denied for x", "configuration"),
        ('Error: pinging container registry r: Get "https://r/v2/": connection refused', "network"),
        ("Error: received unexpected HTTP status: 503 Service Unavailable", "network"),
        ("Error: writing blob: no space left on device", "resource"),
    ],
)
def test_only_failures_that_may_pass_are_tried_again(said: str, failure: str) -> None:
    failed = failure_of("r/box:2", Ran(125, "", f"Trying to pull\n{said}\n"))
    assert failed.failure == failure
    assert failed.message == f"cannot fetch the image r/box:2: {said.removeprefix('Error: ')}"


@pytest.mark.parametrize(
    ("code", "said", "failure"),
    [
        (127, b"docker: Error response from daemon: x", "configuration"),
        (126, b'Error: runc: exec: "/etc": is a directory', "configuration"),
        (126, b'Error: crun: exec: "x": executable file not found in $PATH', "configuration"),
        (125, b"Error: slirp4netns failed: open /dev/net/tun", "resource"),
        (126, b"Error: setting rlimit: operation not permitted", "resource"),
    ],
)
def test_an_engine_that_cannot_start_containers_is_not_the_jobs_fault(
    code: int, said: bytes, failure: str
) -> None:
    assert start_failure("x in box", code, said).failure == failure


def test_credentials_are_for_the_registry_of_the_image_only() -> None:
    assert registry_of("box:1") == registry_of("library/box") == "docker.io"
    assert registry_of("ghcr.io/a/b") == "ghcr.io"
    assert registry_of("localhost:5000/b") == "localhost:5000"
    told = json.loads(auth_settings("me:pass:word", "ghcr.io/a/b:1", podman=True))
    assert told == {"auths": {"ghcr.io": {"auth": "bWU6cGFzczp3b3Jk"}}}
    hub = json.loads(auth_settings("me:p", "box:1", podman=False))
    assert list(hub["auths"]) == ["https://index.docker.io/v1/"]
    file = '{"auths": {}}'
    assert auth_settings(file, "box:1", podman=True) == file
