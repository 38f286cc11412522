"""How a package adds to Windlass: it declares a `Plugin`, which Windlass finds once installed.

The package names its declaration in the entry-point group `windlass.plugins`:

    [project.entry-points."windlass.plugins"]
    hello = "windlass_hello:PLUGIN"

A declaration only names things, as "MODULE:NAME"; each is imported when it is used. So the module
with the declaration must import little: every command outside Windlass's own loads it.

A plug-in that cannot be loaded is left out, and `windlass plugins` and `windlass doctor` say why.
It must not stop Windlass: nobody can repair an installation with a program that does not start.
"""

import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple

from windlass.domain.values.errors import WindlassError

GROUP: Final = "windlass.plugins"
API: Final = 1  # the version of the declaration; a change that breaks plug-ins raises it
RESERVED: Final = frozenset((
    "access", "aging", "allowed", "answer", "app", "artifacts", "attention", "audit", "bad",
    "batch", "blob", "blobs", "bound", "call", "cancel", "capability", "chunk", "cleanup",
    "codes", "config", "cron", "dashboard", "data", "db", "doctor", "drain", "env", "event",
    "events", "explain", "fair", "fleet", "health", "heard", "heartbeat", "http", "import",
    "inbox", "init", "isolation", "job", "jobs", "listen", "live", "log", "login", "logout", "logs",
    "names", "namespaces", "no", "notify", "overview", "pass", "payload", "plugins", "pool",
    "pools", "port", "prioritize", "questions", "queue", "queues", "reactions", "reload",
    "reservation", "result", "results", "retention", "retry", "returned", "run", "schedules",
    "scheduling", "secrets", "send", "series", "server", "set", "show", "signal", "signals",
    "simulate", "slots", "spool", "stack", "stall", "statistics", "step", "steps", "store",
    "submit", "tasks", "templates", "term", "time", "timeouts", "tls", "tokens", "top", "unblock",
    "up", "upload", "uploads", "verify", "webhook", "whoami", "windlass", "worker", "workers",
    "workflow", "workflows",
))  # fmt: skip
"""Names of commands and routes, and first words of options, that Windlass has itself."""
NAME: Final = re.compile(r"[a-z][a-z0-9-]{1,39}")


class PluginFailed(WindlassError):
    """A part of a plug-in that was asked for cannot be loaded."""

    code = "plugin_failed"


class PluginCommand(NamedTuple):
    """A command of `windlass`: a function or a cyclopts App, and its line in `windlass --help`.

    A command that runs foreign programs gets a process that they cannot read.
    """

    path: str
    help: str
    runs_foreign_programs: bool = False


class PluginPage(NamedTuple):
    """A page of the dashboard: a link in the navigation for callers who may do `needs`.

    `folder` is "PACKAGE:FOLDER" with an index.html, served below /plugins/NAME/. A page that is
    part of the dashboard itself has a `view` instead: its path there.
    """

    label: str
    needs: str = "read-plugins"
    folder: str = ""
    view: str = ""


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """What one package adds. All fields but the first three may stay empty."""

    api: int
    """The version of this declaration that the package was written for: 1."""
    name: str
    """Lower-case letters, digits and hyphens. Its routes lie below /api/v1/NAME, and its commands
    and options are NAME or begin with NAME and a hyphen, so that plug-ins never clash."""
    about: str
    """One sentence for `windlass plugins`."""

    commands: Mapping[str, PluginCommand] = field(default_factory=dict)
    tasks: Mapping[str, str] = field(default_factory=dict)
    """What workers run, by task: functions marked with `@windlass.task(name=…)`, a module with
    them, or a class or function that makes an `Executor` (`windlass.ports.executor`). If the latter
    has an attribute `kind`, a `TaskKind`, servers check the arguments of such jobs with it."""
    providers: Mapping[str, str] = field(default_factory=dict)
    """Providers, named NAME:PROVIDER in pools: functions that take (pool, folder, clock) and return
    a `Provider`."""
    blobs: Mapping[str, str] = field(default_factory=dict)
    """Where logs and artifacts can be, by scheme of the URL: functions that take it and return
    `Blobs`."""
    server: str = ""
    """A `windlass.server.plugins.ServerPart`: routes with their rights, metrics, a service."""
    server_options: Mapping[str, str] = field(default_factory=dict)
    """Options of `windlass server` and `windlass up`, with their help. Each takes a text and may be
    repeated."""
    page: PluginPage | None = None
    checks: str = ""
    """A function without arguments for `windlass doctor`: returns (check, state, detail) tuples,
    where the state is ok, note or problem."""
    extensions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What it adds to other plug-ins, by the name of the place: {"fuzz.engines": {"mine": …}}."""
    docs: str = ""
    """Where its documentation is."""


class InstalledPlugin(NamedTuple):
    """A plug-in that was found; `problem` says why it is left out."""

    name: str
    package: str
    version: str
    plugin: Plugin | None
    problem: str = ""


class Named(NamedTuple):
    """Something that a plug-in adds under a name, not yet imported."""

    name: str
    path: str
    plugin: str

    def load(self) -> Any:
        """Imports it; raises `PluginFailed` if that fails, whatever the reason."""
        return load_part(self.plugin, self.name, self.path)


def installed_plugins() -> tuple[InstalledPlugin, ...]:
    """Returns the plug-ins of all packages on the search path of now, by name.

    A process reads them once for each search path: it takes a file of every package.
    """
    return _read(tuple(sys.path))


def working_plugins() -> Iterator[Plugin]:
    """Yields the declarations that could be loaded."""
    return (found.plugin for found in installed_plugins() if found.plugin is not None)


def added(kind: str) -> Iterator[Named]:
    """Yields what plug-ins add of one kind: `tasks`, `providers` or `blobs`."""
    for plugin in working_plugins():
        for name, path in getattr(plugin, kind).items():
            yield Named(name, path, plugin.name)


def extensions(place: str) -> dict[str, Named]:
    """Returns what plug-ins add to another plug-in, by name."""
    return {
        name: Named(name, path, plugin.name)
        for plugin in working_plugins()
        for name, path in plugin.extensions.get(place, {}).items()
    }


def load_part(plugin: str, what: str, path: str) -> Any:
    """Imports a part of a plug-in by its path."""
    try:
        return pkgutil.resolve_name(path)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise PluginFailed(
            f"cannot load {what} of the plug-in {plugin} from {path}: {why}"
        ) from error


@lru_cache(maxsize=16)
def _read(path: tuple[str, ...]) -> tuple[InstalledPlugin, ...]:
    del path  # what is found depends on it
    found: dict[str, InstalledPlugin] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        one = _load(point)
        before = found.get(one.name)
        if before is not None and before.package != one.package:
            problem = f"{before.package} {before.version} has a plug-in of this name too"
            found[f"{one.name} {one.package}"] = one._replace(plugin=None, problem=problem)
        elif before is None:
            found[one.name] = one
    return tuple(found.values())


def _load(point: EntryPoint) -> InstalledPlugin:
    package, version = ("?", "?") if point.dist is None else (point.dist.name, point.dist.version)
    try:
        plugin = point.load()
    except (Exception, SystemExit) as error:
        problem = f"cannot load {point.value}: {type(error).__name__}: {error}"
        return InstalledPlugin(point.name, package, version, None, problem)
    problem = _problem(point, plugin)
    return InstalledPlugin(point.name, package, version, None if problem else plugin, problem)


def _problem(point: EntryPoint, plugin: object) -> str:
    """Returns what is wrong with a declaration; empty if it can be used."""
    if not isinstance(plugin, Plugin):
        return f"{point.value} is {type(plugin).__name__}, expected a windlass.plugins.Plugin"
    if plugin.api != API:
        return f"it was written for api {plugin.api}, and this Windlass has api {API}"
    if plugin.name != point.name or NAME.fullmatch(plugin.name) is None:
        return (
            f"its entry point is named {point.name} and its declaration {plugin.name}: expected "
            "the same name of lower-case letters, digits and hyphens"
        )
    if plugin.name in RESERVED:
        return f"Windlass uses the name {plugin.name} itself"
    for named in (*plugin.commands, *plugin.server_options):
        if named != plugin.name and not named.startswith(f"{plugin.name}-"):
            return f"its {named} must be named {plugin.name} or {plugin.name}-…"
    return ""
