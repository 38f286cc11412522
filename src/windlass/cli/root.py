"""The commands of `windlass`, each loaded when it is called.

Registering a command by its import path keeps `windlass --version` and the small commands fast.
Commands that load the server or the worker give their help here, so that `windlass --help` does not
load them either. Plug-ins are looked for when a name is none of these.
"""

from functools import cache
from typing import Final, NamedTuple

from cyclopts import App, Group, Parameter

START: Final = Group("Start", sort_key=1)
JOBS: Final = Group("Jobs", sort_key=2)
WORKFLOWS: Final = Group("Workflows", sort_key=3)
FLEET: Final = Group("Fleet", sort_key=4)
MAINTENANCE: Final = Group("Maintenance", sort_key=5)
PLUGINS: Final = Group("Plug-ins", sort_key=6)


class Command(NamedTuple):
    """One command: where it is, and its help if `windlass --help` should not load it.

    `logs` says that it runs parts that write a log. One that runs foreign programs keeps its own
    process closed to them.
    """

    path: str
    group: Group
    help: str | None = None
    alias: str | None = None
    logs: bool = False
    runs_foreign_programs: bool = False
    usage: str | None = None  # if cyclopts's own is not clear


COMPLETION_FLAG: Final = "--install-completion"
_HERE: Final = "windlass.cli.commands"

COMMANDS: Final[dict[str, Command]] = {
    "up": Command(
        f"{_HERE}.start.up:up", START,
        "Start a server, its store and workers on this machine.", logs=True,
    ),
    "server": Command(
        f"{_HERE}.start.server:server", START,
        "Start a server; any number of servers may share one PostgreSQL database.", logs=True,
    ),
    "worker": Command(
        f"{_HERE}.start.worker:worker", START,
        "Start a worker that takes jobs from a server, or directly from a store.", logs=True,
    ),
    "init": Command(f"{_HERE}.start.init:init", START),
    "dashboard": Command(f"{_HERE}.fleet.access:dashboard", START),
    "run": Command(
        f"{_HERE}.jobs.submit:run", JOBS, usage="Usage: windlass run [OPTIONS] -- COMMAND [ARGS...]"
    ),
    "submit": Command(
        f"{_HERE}.jobs.submit:submit", JOBS,
        usage="Usage: windlass submit [OPTIONS] -- COMMAND [ARGS...]",
    ),
    "call": Command(f"{_HERE}.jobs.call:call", JOBS),
    "jobs": Command(f"{_HERE}.jobs.jobs:jobs", JOBS),
    "show": Command(f"{_HERE}.jobs.jobs:show", JOBS),
    "logs": Command(f"{_HERE}.jobs.logs:logs", JOBS),
    "artifacts": Command(
        f"{_HERE}.jobs.jobs:artifacts", JOBS, usage="Usage: windlass artifacts [OPTIONS] JOB [NAME]"
    ),
    "cancel": Command(
        f"{_HERE}.jobs.change:cancel", JOBS, usage="Usage: windlass cancel [OPTIONS] [JOBS...]"
    ),
    "retry": Command(
        f"{_HERE}.jobs.change:retry", JOBS, usage="Usage: windlass retry [OPTIONS] [JOB]"
    ),
    "unblock": Command(f"{_HERE}.jobs.change:unblock", JOBS),
    "send": Command(
        f"{_HERE}.jobs.signals:send", JOBS, usage="Usage: windlass send [OPTIONS] SIGNAL [PAYLOAD]"
    ),
    "questions": Command(f"{_HERE}.jobs.signals:questions", JOBS),
    "answer": Command(f"{_HERE}.jobs.signals:answer", JOBS),
    "prioritize": Command(
        f"{_HERE}.jobs.change:prioritize", JOBS,
        usage="Usage: windlass prioritize --adjustment INT [OPTIONS] [JOB]",
    ),
    "explain": Command(f"{_HERE}.jobs.explain:explain", JOBS),
    "time": Command(f"{_HERE}.jobs.explain:time_spent", JOBS),
    "stack": Command(f"{_HERE}.jobs.logs:stack", JOBS),
    "spool": Command(f"{_HERE}.jobs.spool:spool", JOBS),
    "workflows": Command(f"{_HERE}.workflows.workflows:workflows", WORKFLOWS, alias="workflow"),
    "templates": Command(f"{_HERE}.workflows.templates:templates", WORKFLOWS),
    "schedules": Command(f"{_HERE}.workflows.schedules:schedules", WORKFLOWS),
    "top": Command(
        f"{_HERE}.fleet.top:top", FLEET,
        "Show queues, workers, rates and jobs; redraw them every second until Ctrl-C.",
    ),
    "workers": Command(f"{_HERE}.fleet.workers:workers", FLEET),
    "pools": Command(f"{_HERE}.fleet.pools:pools", FLEET),
    "queues": Command(f"{_HERE}.fleet.queues:queues", FLEET),
    "namespaces": Command(f"{_HERE}.fleet.queues:namespaces", FLEET),
    "tokens": Command(f"{_HERE}.fleet.access:tokens", FLEET),
    "login": Command(f"{_HERE}.fleet.access:login", FLEET),
    "logout": Command(f"{_HERE}.fleet.access:logout", FLEET),
    "whoami": Command(f"{_HERE}.fleet.access:whoami", FLEET),
    "names": Command(f"{_HERE}.jobs.jobs:names", FLEET),
    "db": Command(
        f"{_HERE}.maintenance.db:database", MAINTENANCE,
        "Upgrade, back up and restore the database.", logs=True,
    ),
    "events": Command(f"{_HERE}.maintenance.events:show_events", MAINTENANCE),
    "audit": Command(f"{_HERE}.maintenance.events:show_audit", MAINTENANCE),
    "verify": Command(f"{_HERE}.maintenance.db:verify", MAINTENANCE, logs=True),
    "doctor": Command(f"{_HERE}.maintenance.doctor:doctor", MAINTENANCE),
    "plugins": Command(f"{_HERE}.maintenance.plugins:plugins", MAINTENANCE),
    "config": Command(f"{_HERE}.maintenance.config:show_config", MAINTENANCE),
    "simulate": Command(
        f"{_HERE}.simulate:simulate_seeds", MAINTENANCE,
        "Simulate a whole installation with faults, under seeds, and check the invariants.",
    ),
}  # fmt: skip


OWN_NAMES: Final = frozenset(COMMANDS) | {one.alias for one in COMMANDS.values()}


def _version() -> str:
    from importlib.metadata import version

    return version("windlass")


app = App(
    name="windlass",
    help="A job scheduler for fleets of workers.",
    version=_version,
    # Flags are off by default, so `--no-…` forms would only make the help longer.
    default_parameter=Parameter(negative=""),
)
for _name, _command in COMMANDS.items():
    app.command(
        _command.path, name=_name, alias=_command.alias, group=_command.group, help=_command.help,
        **({} if _command.usage is None else {"usage": _command.usage}),
    )  # fmt: skip


def find_command(name: str) -> Command | None:
    """Returns a command; looks at plug-ins only for a name that is not Windlass's own."""
    if name in OWN_NAMES or name.startswith("-"):
        return COMMANDS.get(name)
    add_plugins()
    return _of_plugins().get(name)


@cache
def _of_plugins() -> dict[str, Command]:
    """Returns the commands of plug-ins; none has a name that is Windlass's own."""
    from windlass.plugins import working_plugins

    return {
        name: Command(one.path, PLUGINS, one.help, runs_foreign_programs=one.runs_foreign_programs)
        for plugin in working_plugins()
        for name, one in plugin.commands.items()
    }


@cache
def add_plugins() -> None:
    """Adds the commands of plug-ins to the program."""
    for name, command in _of_plugins().items():
        app.command(command.path, name=name, group=command.group, help=command.help)


def load_help() -> None:
    """Loads what `windlass --help` shows: commands whose help is in their module."""
    load_completion()
    for name, command in COMMANDS.items():
        if command.help is None:
            app[name]


def load_completion() -> None:
    """Adds --install-completion, whose library part is not worth loading for other commands."""
    add_plugins()
    app.register_install_completion_command(COMPLETION_FLAG)


def load_command(name: str) -> None:
    """Loads a command of a plug-in; raises `PluginFailed` if that fails.

    An unknown name may be that of a plug-in that could not be loaded.
    """
    if name in OWN_NAMES or name.startswith("-"):
        return
    from windlass.plugins import PluginFailed, installed_plugins

    if name in _of_plugins():
        try:
            app[name]
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            message = f"cannot load the command {name} of a plug-in: {why}; see `windlass plugins`"
            raise PluginFailed(message) from error
    for found in installed_plugins():
        if found.name == name and found.problem:
            raise PluginFailed(f"the plug-in {name} is not loaded: {found.problem}")
