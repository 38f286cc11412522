"""The root of the command line."""

from importlib.metadata import version

from cyclopts import App

from windlass.cli import fleet, jobs
from windlass.cli.logging import configure
from windlass.cli.output import fail
from windlass.domain.errors import WindlassError

app = App(
    name="windlass",
    help="A job scheduler for fleets of workers.",
    version=version("windlass"),
)

# By name: the server behind these takes longer to import than most commands to run.
app.command("windlass.cli.serve:up", name="up", help="Start everything here.")
app.command("windlass.cli.serve:server", name="server", help="Start a server.")
app.command("windlass.cli.serve:worker", name="worker", help="Start a worker.")
app.command(jobs.run, name="run")
app.command(jobs.submit, name="submit")
app.command(jobs.list_jobs, name="jobs")
app.command(jobs.show, name="show")
app.command(jobs.logs, name="logs")
app.command(jobs.cancel, name="cancel")
app.command(jobs.retry, name="retry")
app.command(jobs.unblock, name="unblock")
app.command(jobs.prioritize, name="prioritize")
app.command(fleet.workers)
app.command(fleet.queues)
app.command(fleet.tokens)
app.command(fleet.names)
app.command("windlass.cli.serve:database", name="db", help="Look after the database.")
app.command("windlass.cli.serve:verify", name="verify", help="Replay the log, check it.")
app.command("windlass.cli.serve:doctor", name="doctor", help="Check this installation.")


def main() -> None:
    """What the `windlass` program runs."""
    configure()
    try:
        app()
    except WindlassError as error:
        fail(error)
