"""The command line of an engine that runs a job's program in a container.

Other users can read a command line, so no secret is on it: variables go through a private file.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput
from windlass.ports.executor import Limits
from windlass.worker.isolation.container_engine import Engine

SCRATCH: Final = "/scratch"  # the path of the attempt's folder in a container
SOCKET: Final = "/run/windlass/agent.sock"
REPORTER: Final = "/run/windlass/reporter"  # the first process, which starts the program
REPORT: Final = "/run/windlass/report"
STATE_LABEL: Final = "windlass.state"
LINE_LIMIT: Final = 60_000  # maximum line length that all engines accept, in bytes

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class Container(NamedTuple):
    """One container: its name, what runs in it and what it may use.

    `owner` are the uid and gid of the worker's user, who owns new files; `user` are those of its
    program instead of root's, where the engine can map them. `reporter` is the file of the program
    that writes how the job's program ended to the file `report` (`reporter.c`).
    """

    name: str
    state: str  # identifies the containers of one worker
    job: int
    attempt: int
    image: str
    argv: tuple[str, ...]
    scratch: str
    socket: str | None
    env_file: str
    variables: tuple[str, ...]  # further variables, as --env takes them
    network: str | None
    owner: tuple[int, int]
    user: tuple[int, int] | None = None
    limits: Limits | None = None
    gpus: tuple[str, ...] = ()
    open_files: int = 0
    reporter: str | None = None
    report: str = ""


def run_arguments(engine: Engine, container: Container) -> list[str]:
    """Returns the arguments of the engine's program."""
    first = () if container.reporter is None else (REPORTER, REPORT)
    return ["run", *_options(engine, container), container.image, *first, *container.argv]


def _options(engine: Engine, container: Container) -> Iterator[str]:
    yield from ("--name", container.name)
    yield from ("--label", f"{STATE_LABEL}={container.state}")
    yield from ("--label", f"windlass.job={container.job}")
    yield from ("--label", f"windlass.attempt={container.attempt}")
    yield from ("--pull", "never", "--entrypoint", "", "--workdir", SCRATCH, "--interactive")
    if container.reporter is not None:
        yield from ("--mount", _mount(engine, container.reporter, REPORTER) + ",readonly")
        yield from ("--mount", _mount(engine, container.report, REPORT))
    elif engine.init:
        yield "--init"
    if engine.kind == "podman":
        yield "--http-proxy=false"
        yield from ("--log-driver", "passthrough" if engine.passes_streams else "none")
    else:
        yield from ("--log-driver", "none")
    yield from _rights(engine, container)
    yield from ("--mount", _mount(engine, container.scratch, SCRATCH))
    if container.socket is not None:
        yield from ("--mount", _mount(engine, container.socket, SOCKET))
    yield from ("--env-file", container.env_file)
    for variable in container.variables:
        yield from ("--env", variable)
    if container.network is not None:
        yield from ("--network", container.network)
    yield from _limits(engine, container)
    yield from _gpus(engine, container.gpus)


def _rights(engine: Engine, container: Container) -> Iterator[str]:
    """Yields the options by which new files in the scratch folder belong to the worker."""
    yield from ("--security-opt", "no-new-privileges")
    if container.user is not None:
        if not engine.maps_users:
            expected = "unset: only rootless podman can map users"
            raise InvalidInput("container_user", expected, container.user[0])
        uid, gid = container.user
        yield f"--userns=keep-id:uid={uid},gid={gid}"
        yield f"--user={uid}:{gid}"
    elif engine.rootless:
        yield "--user=0:0"
    else:
        yield "--user={}:{}".format(*container.owner)
    if not engine.maps_users:
        yield "--cap-drop=all"


def _mount(engine: Engine, source: str, target: str) -> str:
    fields = ["type=bind", f"source={source}", f"target={target}"]
    if engine.kind == "podman" and target == SCRATCH:
        fields.append("relabel=private")
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def _limits(engine: Engine, container: Container) -> Iterator[str]:
    limits = container.limits or Limits()
    if limits.memory_bytes and "memory" in engine.enforces:
        yield f"--memory={limits.memory_bytes}"
        yield f"--memory-swap={limits.memory_bytes}"
    if limits.processes and "processes" in engine.enforces:
        init = engine.init or container.reporter is not None
        yield f"--pids-limit={limits.processes + init}"
    if limits.cpu_seconds:
        yield f"--ulimit=cpu={limits.cpu_seconds}:{limits.cpu_seconds + 1}"
    if container.open_files:
        yield f"--ulimit=nofile={container.open_files}:{container.open_files}"
    if limits.cpus and "cpus" in engine.enforces:
        yield f"--cpuset-cpus={','.join(map(str, limits.cpus))}"


def _gpus(engine: Engine, gpus: tuple[str, ...]) -> Iterator[str]:
    if not gpus:
        return
    if engine.kind == "podman":
        for gpu in gpus:
            yield f"--device=nvidia.com/gpu={gpu}"
    else:
        yield f'--gpus="device={",".join(gpus)}"'


class Variables(NamedTuple):
    """How the variables of a program reach its container.

    `file` is the text of an env file, `named` goes to --env, and the engine's own environment has
    to contain `inherited`, whose names are among `named`.
    """

    file: str
    named: tuple[str, ...]
    inherited: dict[str, str]


def divide_variables(env: Mapping[str, str], secrets: Iterable[str]) -> Variables:
    """Divides variables by what engines accept in a file: names and values of one line.

    The others go on the command line, except for secrets. Those come from the operator, so they may
    become variables of the engine's program; variables set by a job must not.
    """
    hidden = frozenset(secrets)
    lines, named, inherited = [], [], {}
    for name, value in env.items():
        if _fits(name, value):
            lines.append(f"{name}={value}\n")
        elif name in hidden:
            named.append(name)
            inherited[name] = value
        else:
            named.append(f"{name}={value}")
    return Variables("".join(lines), tuple(named), inherited)


def _fits(name: str, value: str) -> bool:
    if not _NAME.fullmatch(name) or "\n" in value or "\r" in value:
        return False
    try:
        return len(name) + len(value.encode()) < LINE_LIMIT
    except UnicodeEncodeError:
        return False
