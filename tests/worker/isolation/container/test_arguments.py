"""How a container is started with each engine, and what must not be on its command line."""

import csv

import pytest

from windlass.domain.values.errors import InvalidInput
from windlass.ports.executor import Limits
from windlass.worker.isolation.container_arguments import (
    Container,
    divide_variables,
    run_arguments,
)
from windlass.worker.isolation.container_engine import Engine, Kind

ALL = frozenset({"memory", "cpus", "processes"})


def engine(kind: Kind = "podman", **more: object) -> Engine:
    given = {"program": f"/usr/bin/{kind}", "version": "4.3.1", "rootless": True, **more}
    return Engine(kind=kind, **given)  # type: ignore[arg-type]


def container(**more: object) -> Container:
    given = {
        "name": "n", "state": "s", "job": 7, "attempt": 2, "image": "box:1",
        "argv": ("echo", "--rm"), "scratch": "/state/scratch/1", "socket": "/state/agent.sock",
        "env_file": "/state/env", "variables": (), "network": None, "owner": (1000, 100), **more,
    }  # fmt: skip
    return Container(**given)  # type: ignore[arg-type]


def test_the_image_and_the_program_come_last_and_are_no_options() -> None:
    words = run_arguments(engine(), container())
    assert words[0] == "run"
    assert words[-3:] == ["box:1", "echo", "--rm"]
    assert words[words.index("--entrypoint") + 1] == ""
    assert words[words.index("--pull") + 1] == "never"


def test_files_belong_to_the_worker_with_every_engine() -> None:
    assert "--user=0:0" in run_arguments(engine(), container())
    assert "--user=0:0" in run_arguments(engine("docker"), container())
    assert "--user=1000:100" in run_arguments(engine("docker", rootless=False), container())
    mapped = run_arguments(engine(), container(user=(5, 6)))
    assert "--userns=keep-id:uid=5,gid=6" in mapped
    with pytest.raises(InvalidInput, match="rootless podman"):
        run_arguments(engine("docker"), container(user=(5, 6)))


def test_capabilities_are_kept_only_where_they_end_at_the_workers_user() -> None:
    assert "--cap-drop=all" not in run_arguments(engine(), container())
    for strict in (engine(rootless=False), engine("docker"), engine("nerdctl")):
        assert "--cap-drop=all" in run_arguments(strict, container())
    for kind in ("podman", "docker", "nerdctl"):
        words = run_arguments(engine(kind), container())
        assert words[words.index("--security-opt") + 1] == "no-new-privileges"


def test_a_folder_with_a_comma_stays_one_field() -> None:
    words = run_arguments(engine("docker"), container(scratch="/a,b/c"))
    (fields,) = csv.reader([words[words.index("--mount") + 1]])
    assert fields == ["type=bind", "source=/a,b/c", "target=/scratch"]


def test_limits_are_given_to_an_engine_that_enforces_them() -> None:
    limits = Limits(memory_bytes=2**20, cpu_seconds=3, cpus=(0, 2))
    words = run_arguments(engine(enforces=ALL), container(limits=limits))
    for word in ("--memory=1048576", "--memory-swap=1048576", "--cpuset-cpus=0,2",
                 "--ulimit=cpu=3:4"):  # fmt: skip
        assert word in words
    weaker = run_arguments(engine(), container(limits=limits))
    assert not any(word.startswith(("--memory", "--cpuset")) for word in weaker)


def test_a_job_gets_its_own_gpus_only() -> None:
    words = run_arguments(engine(), container(gpus=("1", "3")))
    assert [word for word in words if "gpu" in word] == [
        "--device=nvidia.com/gpu=1", "--device=nvidia.com/gpu=3",
    ]  # fmt: skip
    assert '--gpus="device=1,3"' in run_arguments(engine("docker"), container(gpus=("1", "3")))


def test_older_podman_does_not_pass_its_streams() -> None:
    old = run_arguments(engine(version="3.4.4"), container())
    assert old[old.index("--log-driver") + 1] == "none"
    new = run_arguments(engine(version="5.0"), container())
    assert new[new.index("--log-driver") + 1] == "passthrough"


def test_secrets_are_neither_on_the_command_line_nor_names_of_the_jobs_choice() -> None:
    env = {
        "PLAIN": "a b=c", "LINES": "1\n2", "odd name": "x", "LONG": "y" * 70_000,
        "TOKEN": "s1", "KEY": "s2\ns3", "LD_PRELOAD": "/evil.so",
    }  # fmt: skip
    divided = divide_variables(env, {"TOKEN", "KEY"})
    assert divided.file == "PLAIN=a b=c\nTOKEN=s1\nLD_PRELOAD=/evil.so\n"
    assert divided.named == ("LINES=1\n2", "odd name=x", f"LONG={'y' * 70_000}", "KEY")
    assert divided.inherited == {"KEY": "s2\ns3"}
