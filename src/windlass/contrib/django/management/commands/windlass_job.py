"""`manage.py windlass_job`: shows a job."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from windlass.contrib.django.submitting import get_client
from windlass.domain.values.errors import WindlassError


class Command(BaseCommand):
    """Prints the state of a job, and its result or why it has none."""

    help = "Shows the state of a job, and its result or why it has none."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("job", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        """Asks the server."""
        del args
        try:
            job = get_client().job(options["job"]).info()
        except WindlassError as error:
            raise CommandError(error.message) from error
        about = job.result if job.state == "completed" else job.reason or ""
        self.stdout.write(f"{job.id} {job.state} {about}".rstrip())
