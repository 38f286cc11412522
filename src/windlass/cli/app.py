"""The root of the command line."""

from importlib.metadata import version

from cyclopts import App

from windlass.cli import fleet, jobs, serve
from windlass.cli.logging import configure
from windlass.cli.output import fail
from windlass.domain.errors import WindlassError

app = App(
    name="windlass",
    help="A job scheduler for fleets of workers.",
    version=version("windlass"),
)

app.command(serve.up, name="up")
app.command(serve.server, name="server")
app.command(serve.worker, name="worker")
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
app.command(serve.database)
app.command(serve.verify, name="verify")
app.command(serve.doctor, name="doctor")


def main() -> None:
    """What the `windlass` program runs."""
    configure()
    try:
        app()
    except WindlassError as error:
        fail(error)
