"""The root of the command line."""

import os
import sys
from importlib.metadata import version

from cyclopts import App, CycloptsError, Group, Parameter

from windlass.cli import config, explain, fleet, jobs, queues
from windlass.cli.connection import explain_distrust, explain_refusal
from windlass.cli.leaving import run_and_leave
from windlass.cli.logging import configure
from windlass.cli.output import FAILED, USAGE, fail
from windlass.domain.values.errors import WindlassError

app = App(
    name="windlass",
    help="A job scheduler for fleets of workers.",
    version=version("windlass"),
    # A flag is off unless it is given; `--no-…` for each would only make lists longer.
    default_parameter=Parameter(negative=""),
)

START = Group("Start", sort_key=1)
JOBS = Group("Jobs", sort_key=2)
FLEET = Group("Fleet", sort_key=3)
UPKEEP = Group("Upkeep", sort_key=4)

# By name: the server behind these takes longer to import than most commands to run.
app.command("windlass.cli.up:up", name="up", group=START, help="Start everything here.")
app.command("windlass.cli.serve:server", name="server", group=START, help="Start a server.")
app.command("windlass.cli.serve:worker", name="worker", group=START, help="Start a worker.")
app.command(jobs.run, name="run", group=JOBS)
app.command(jobs.submit, name="submit", group=JOBS)
app.command(jobs.list_jobs, name="jobs", group=JOBS)
app.command(jobs.show, name="show", group=JOBS)
app.command(jobs.logs, name="logs", group=JOBS)
app.command(jobs.artifacts, name="artifacts", group=JOBS)
app.command(jobs.cancel, name="cancel", group=JOBS)
app.command(jobs.retry, name="retry", group=JOBS)
app.command(jobs.unblock, name="unblock", group=JOBS)
app.command(explain.explain, name="explain", group=JOBS)
app.command(explain.time_spent, name="time", group=JOBS)
app.command(jobs.prioritize, name="prioritize", group=JOBS)
app.command(
    "windlass.cli.workflows:workflow",
    name="workflow",
    group=JOBS,
    help="Submit, watch and manage workflows.",
)
app.command(
    "windlass.cli.schedules:templates",
    name="templates",
    group=JOBS,
    help="Put, look at, start and remove templates of workflows.",
)
app.command(
    "windlass.cli.schedules:schedules",
    name="schedules",
    group=JOBS,
    help="Put, look at, pause, run and remove schedules.",
)
app.command(
    "windlass.cli.pools:pools",
    name="pools",
    group=FLEET,
    help="Apply, look at, plan and delete pools of workers.",
)
app.command(
    "windlass.cli.fuzz.commands:fuzz",
    name="fuzz",
    group=JOBS,
    help="Fuzz the commits of a solver: find, build, fuzz, report.",
)
for part in (fleet.workers, queues.queues, queues.namespaces, fleet.tokens, fleet.names):
    part.group = FLEET
    app.command(part)
app.command(
    "windlass.cli.upkeep:database", name="db", group=UPKEEP, help="Look after the database."
)
app.command(
    "windlass.cli.upkeep:verify", name="verify", group=UPKEEP, help="Replay the log, check it."
)
app.command(
    "windlass.cli.doctor:doctor", name="doctor", group=UPKEEP, help="Check this installation."
)
app.command(config.show_config, name="config", group=UPKEEP)
app.register_install_completion_command()


def main() -> None:
    """What the `windlass` program runs."""
    run_and_leave(_main)


def _main() -> None:
    configure()
    try:
        app(exit_on_error=False)
    except CycloptsError:  # which it has shown
        raise SystemExit(USAGE) from None
    except WindlassError as error:
        fail(explain_distrust(error) or explain_refusal(error) or error)
    except BrokenPipeError:
        # Whoever read the output has enough; Python would complain once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(FAILED) from None
