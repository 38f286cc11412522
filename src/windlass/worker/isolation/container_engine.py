"""The container engine of this machine: podman, docker or nerdctl, and what it supports.

Images are fetched when a job needs one. Containers left by a killed agent are removed, and the
process that podman leaves by itself.
"""

import asyncio
import base64
import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec
import structlog

from windlass.domain.matching.isolation import Pull
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.ports.clock import Clock
from windlass.ports.programs import start_program
from windlass.worker.isolation.confinement import ConfinementFailed
from windlass.worker.keeper.outside import Ender, find_enders, has_ended
from windlass.worker.keeper.processes import all_processes, environ_of

Kind = Literal["podman", "docker", "nerdctl"]

ENGINE: Final = "WINDLASS_CONTAINER_ENGINE"  # the variable that names the engine
STARTED_BY: Final = "WINDLASS_ENGINE_STARTED_BY"  # label that marks containers of a worker
AUTO: Final = "auto"  # the first working one of KINDS
OFF: Final = "off"
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MAX_S: Final = 30  # for everything except pulling an image
OLDEST_PASSTHROUGH: Final = (4, 0)  # first podman version that gives its own streams to a container

# What an engine's program reads from its environment: where it keeps things, and how it reaches
# them. Variables set by a job are never included: they could make the program run anything.
KEPT: Final = frozenset({
    "CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE", "CONTAINER_HOST", "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_CERT_PATH", "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY",
    "HOME", "HTTPS_PROXY", "HTTP_PROXY", "LANG", "LOGNAME", "NERDCTL_TOML", "NO_PROXY", "PATH",
    "REGISTRY_AUTH_FILE", STARTED_BY, "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "USER",
    "http_proxy", "https_proxy", "no_proxy",
})  # fmt: skip
KEPT_STARTS: Final = ("CONTAINERS_", "STORAGE_", "XDG_")
INIT_PLACES: Final = (
    "/usr/libexec/podman", "/usr/lib/podman", "/usr/local/libexec/podman", "/usr/local/lib/podman",
)  # fmt: skip

_NUMBER: Final = re.compile(r"\d+")

SETTINGS: Final = "config.json"  # docker's file with credentials
DEFAULT_REGISTRY: Final = "docker.io"
_HUB: Final = "https://index.docker.io/v1/"  # Docker Hub's name in docker's settings

# What registries and engines print when trying again would not help.
_WRONG: Final = re.compile(
    "manifest unknown|name unknown|not found|not known|no such image|denied|unauthorized|"
    "authentication required|invalid reference|invalid username|did not resolve to an alias|"
    "no matching manifest|no image found in|x509|repository does not exist|unsupported",
    re.IGNORECASE,
)
_FULL: Final = re.compile("no space left|disk quota", re.IGNORECASE)

PAUSE: Final = b"_PODMAN_PAUSE=1"  # in the environment of podman's pause process
# after this long, other processes in podman's namespace are not about to end
ALONE_MS: Final = 5_000
LOOK_MS: Final = 50

log = structlog.get_logger()


class EngineAway(WindlassError):
    """The engine does not answer, or no longer supports what it did when the worker started."""

    code = "engine_away"


class Ran(NamedTuple):
    """How a command of the engine ended, and what it printed."""

    code: int
    output: str
    errors: str

    @property
    def reason(self) -> str:
        """Returns the last error line it printed."""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return lines[-1].removeprefix("Error: ") if lines else f"exit code {self.code}"


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """One engine. `enforces` are the limits it applies to containers: memory, cpus, processes.

    `rootless`: root in a container is the user of this process, and has no other rights. With
    `init` a small program can be the first process of a container, which passes signals on.
    """

    kind: Kind
    program: str
    version: str
    rootless: bool
    enforces: frozenset[str] = frozenset()
    init: bool = False
    env: dict[str, str] = {}

    @property
    def passes_streams(self) -> bool:
        """Returns whether a container can write to the streams of the engine's program directly."""
        found = tuple(map(int, _NUMBER.findall(self.version)[:2]))
        return self.kind == "podman" and found >= OLDEST_PASSTHROUGH

    @property
    def command(self) -> tuple[str, ...]:
        """Returns the quiet program: otherwise its messages would appear in jobs' logs."""
        return (self.program,) if self.kind == "nerdctl" else (self.program, "--log-level", "error")

    @property
    def maps_users(self) -> bool:
        """Returns whether users in a container are users below this process's own."""
        return self.rootless and self.kind == "podman"

    def removal(self, name: str) -> tuple[str, ...]:
        """Returns the command that ends and removes a container in any state."""
        return ("rm", "--force", "--volumes", *(("--time", "0") * (self.kind == "podman")), name)

    @property
    def metadata(self) -> dict[str, Any]:
        """Returns what the server is told, for matching and for people."""
        return {
            "container:engine": self.kind,
            "container:version": self.version,
            "container:rootless": self.rootless,
            "container:limits": sorted(self.enforces),
        }

    def __str__(self) -> str:
        rights = "rootless" if self.rootless else "as root"
        limits = ", ".join(sorted(self.enforces)) or "nothing"
        return f"{self.kind} {self.version}, {rights}; limits {limits}"

    async def run(
        self, *arguments: str, longest_s: float | None = MAX_S, env: Mapping[str, str] | None = None
    ) -> Ran:
        """Runs a command of the engine; raises `EngineAway` if it does not end in time."""
        return await run([*self.command, *arguments], {**self.env, **(env or {})}, longest_s)


async def run(argv: Sequence[str], env: Mapping[str, str], longest_s: float | None) -> Ran:
    """Runs a program to its end; kills it and raises `EngineAway` if that takes too long."""
    try:
        process = await start_program(
            *argv, env=env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, start_new_session=True, cwd="/",
        )  # fmt: skip
    except OSError as error:
        raise EngineAway(f"cannot start {argv[0]}: {error.strerror}") from error
    try:
        output, errors = await asyncio.wait_for(process.communicate(), longest_s)
    except TimeoutError:
        raise EngineAway(f"{' '.join(argv[:2])} did not end within {longest_s} s") from None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    code = -1 if process.returncode is None else process.returncode
    return Ran(code, output.decode(errors="replace"), errors.decode(errors="replace"))


def engine_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the part of the worker's environment that the engine's program sees."""
    return {
        name: value
        for name, value in environ.items()
        if name in KEPT or name.startswith(KEPT_STARTS)
    }


async def find_engine(setting: str, environ: Mapping[str, str]) -> Engine | str:
    """Returns the engine to use, or why there is none, in words for people.

    `setting` is `auto`, `off`, the name of an engine or the path of its program.
    """
    if setting == OFF:
        return "containers are off on this worker"
    env = engine_environment(environ)
    reasons = []
    for kind, name in candidates(setting):
        program = shutil.which(name, path=env.get("PATH", os.defpath))
        if program is None:
            continue
        found = await _ask(kind, program, env)
        if isinstance(found, Engine):
            return found
        reasons.append(f"{kind}: {found}")
    if reasons:
        return "; ".join(reasons)
    wanted = ", ".join(KINDS) if setting == AUTO else setting
    return f"none of {wanted} is installed" if setting == AUTO else f"{wanted} is not installed"


def check_engine(setting: str) -> None:
    """Raises `InvalidInput` unless the setting is auto, off or an engine."""
    if setting != OFF:
        candidates(setting)


def candidates(setting: str) -> list[tuple[Kind, str]]:
    """Returns the programs to try, with their kinds; raises `InvalidInput` for an unknown one."""
    if setting == AUTO:
        return [(kind, kind) for kind in KINDS]
    for kind in KINDS:
        if Path(setting).name == kind:
            return [(kind, setting)]
    expected = f"auto, off, {', '.join(KINDS)}, or the path of one of them"
    raise InvalidInput("container_engine", expected, setting)


async def _ask(kind: Kind, program: str, env: dict[str, str]) -> Engine | str:
    """Asks a program about its engine; returns why it cannot run containers if it cannot."""
    form = "json" if kind == "podman" else "{{json .}}"
    try:
        ran = await run([program, "info", "--format", form], env, MAX_S)
    except EngineAway as error:
        return error.message
    if ran.code != 0:
        return ran.reason
    try:
        told = msgspec.json.decode(ran.output, type=dict[str, Any])
        describe = _podman if kind == "podman" else _docker
        return describe(kind, program, told, env)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        return f"cannot read what {kind} info says: {error}"


def _podman(kind: Kind, program: str, told: dict[str, Any], env: dict[str, str]) -> Engine | str:
    host = told["host"]
    if host.get("serviceIsRemote"):
        return "it runs containers on another machine"
    rootless = bool(host["security"]["rootless"])
    controllers = set(host.get("cgroupControllers") or ())
    if rootless and host.get("cgroupVersion") == "v1":
        controllers = set()  # An ordinary user has no access to them.
    names = {"memory": "memory", "cpu": "cpus", "pids": "processes"}
    enforces = frozenset(names[one] for one in controllers if one in names)
    init = any(
        shutil.which("catatonit", path=place)
        for place in (*INIT_PLACES, env.get("PATH", os.defpath))
    )
    return Engine(
        kind=kind, program=program, version=str(told["version"]["Version"]), rootless=rootless,
        enforces=enforces, init=init, env=env,
    )  # fmt: skip


def _docker(kind: Kind, program: str, told: dict[str, Any], env: dict[str, str]) -> Engine | str:
    if not told.get("ServerVersion"):
        errors = told.get("ServerErrors") or ["its daemon does not answer"]
        return str(errors[0])
    options = told.get("SecurityOptions") or []
    names = {"MemoryLimit": "memory", "CpuCfsQuota": "cpus", "PidsLimit": "processes"}
    init = any(
        shutil.which(one, path=env.get("PATH", os.defpath)) for one in ("docker-init", "tini")
    )
    return Engine(
        kind=kind, program=program, version=str(told["ServerVersion"]),
        rootless=any("rootless" in str(option) for option in options),
        enforces=frozenset(names[one] for one in names if told.get(one)), init=init, env=env,
    )  # fmt: skip


class Images:
    """The images of one engine. If two jobs need the same one, it is fetched once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._locks: dict[str, asyncio.Lock] = {}

    async def provide(
        self, image: str, pull: Pull, folder: Path, credentials: str | None,
        note: Callable[[str], object],
    ) -> None:  # fmt: skip
        """Makes sure that the image is present; raises `ConfinementFailed`.

        `folder` is private: it holds the credentials while the image is fetched.
        """
        async with self._locks.setdefault(image, asyncio.Lock()):
            if pull != "always" and await self._is_here(image):
                return
            if pull == "never":
                message = f"image {image} is not on this worker, and pull is never"
                raise ConfinementFailed("configuration", message)
            await self._fetch(image, folder, credentials, note)

    async def _is_here(self, image: str) -> bool:
        ran = await self._engine.run("image", "inspect", "--format", "{{.Id}}", image)
        if ran.code != 0 and not _WRONG.search(ran.errors):
            raise EngineAway(f"{self._engine.kind} does not answer: {ran.reason}")
        return ran.code == 0

    async def _fetch(
        self, image: str, folder: Path, credentials: str | None, note: Callable[[str], object]
    ) -> None:
        note(f"fetching the image {image}")
        arguments, env = ["pull", "--quiet"], {}
        if credentials is not None:
            place = folder / SETTINGS
            settings = auth_settings(credentials, image, self._engine.kind == "podman")
            write_private(place, settings)
            if self._engine.kind == "podman":
                arguments += ["--authfile", str(place)]
            else:
                env = {"DOCKER_CONFIG": str(folder)}
        try:
            ran = await self._engine.run(*arguments, image, longest_s=None, env=env)
        finally:
            (folder / SETTINGS).unlink(missing_ok=True)
        if ran.code != 0:
            raise failure_of(image, ran)


def failure_of(image: str, ran: Ran) -> ConfinementFailed:
    """Returns what a failed pull means: a wrong description, or something temporary."""
    message = f"cannot fetch the image {image}: {ran.reason}"
    if _FULL.search(ran.errors):
        return ConfinementFailed("resource", message)
    if _WRONG.search(ran.errors):
        return ConfinementFailed("configuration", message)
    return ConfinementFailed("network", message)


def registry_of(image: str) -> str:
    """Returns the registry that an image comes from."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first
    return DEFAULT_REGISTRY


def auth_settings(credentials: str, image: str, podman: bool) -> str:
    """Returns the settings file for a secret: `USER:PASSWORD`, or the text of such a file."""
    if credentials.lstrip().startswith("{"):
        return credentials
    registry = registry_of(image)
    if registry == DEFAULT_REGISTRY and not podman:
        registry = _HUB
    auth = base64.b64encode(credentials.encode()).decode()
    return json.dumps({"auths": {registry: {"auth": auth}}})


def write_private(path: Path, text: str) -> None:
    """Writes a file that only this user can read."""
    path.touch(mode=0o600, exist_ok=True)
    path.write_text(text, "utf-8", "surrogateescape")


async def end_outside(place: Path) -> bool:
    """Ends the containers that the folders at this place name; returns whether all ended."""
    enders = find_enders(str(place))
    ended = await asyncio.gather(*map(_end, enders)) if enders else ()
    if all(ended):
        shutil.rmtree(place, ignore_errors=True)
        return True
    return False


async def _end(ender: Ender) -> bool:
    try:
        ran = await run(ender.argv, ender.env, MAX_S)
    except EngineAway as error:
        log.error("container_survives", name=Path(ender.folder).name, reason=error.message)
        return False
    if not has_ended(ran.code, ran.errors.encode()):
        log.error("container_survives", name=Path(ender.folder).name, reason=ran.reason)
        return False
    shutil.rmtree(ender.folder, ignore_errors=True)
    return True


async def end_pause(owner: str, clock: Clock) -> None:
    """Ends the process with which rootless podman keeps a user namespace, if nobody needs it.

    It ends only one that a command of this worker started; podman starts another on demand. While
    other containers, or their commands, are in the namespace, it stays.
    """
    mark = os.fsencode(f"{STARTED_BY}={owner}")
    for _ in range(ALONE_MS // LOOK_MS):
        pauses = [seen.pid for seen in all_processes() if {PAUSE, mark} <= {*environ_of(seen.pid)}]
        left = [pid for pid in pauses if _end_if_alone(pid)]
        if not left:
            return
        await clock.sleep_ms(LOOK_MS)


def _end_if_alone(pid: int) -> bool:
    """Ends a process unless others share its user namespace; returns whether it goes on."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        own = _namespace(pid)
        if any(_namespace(seen.pid) == own for seen in all_processes() if seen.pid != pid):
            return True
        signal.pidfd_send_signal(process, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(process)
    return False


def _namespace(pid: int) -> str:
    """Returns a process's user namespace; the pid itself if that cannot be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/user")
    except OSError:
        return str(pid)
