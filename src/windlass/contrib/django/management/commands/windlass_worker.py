"""`manage.py windlass_worker`: a worker whose functions can use the project's models."""

import argparse
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from windlass.contrib.django.submitting import read_options


class Command(BaseCommand):
    """Starts a worker for the project, with the server of the settings."""

    help = (
        "Starts a worker. Options that are not Django's are those of `windlass worker`: "
        "manage.py windlass_worker --slots 4 --pass-env DATABASE_URL. "
        "With -- before it, --help is that of `windlass worker` too."
    )

    def run_from_argv(self, argv: list[str]) -> None:
        """Leaves to the worker what follows the first option that Django does not know."""
        program, command, *words = argv
        if "--" not in words:
            _, unknown = self.create_parser(program, command).parse_known_args(words)
            if unknown:
                words.insert(words.index(unknown[0]), "--")
        super().run_from_argv([program, command, *words])

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("options", nargs=argparse.REMAINDER)

    def handle(self, *args: Any, **options: Any) -> None:
        """Becomes the worker."""
        del args
        known = read_options()
        if known.server is not None:
            os.environ["WINDLASS_SERVER"] = known.server
        if known.token is not None:
            os.environ["WINDLASS_TOKEN"] = known.token
        given = [option for option in options["options"] if option != "--"]
        command = ["-m", "windlass", "worker", "--pass-env", "DJANGO_*"]
        command += ["--import", "windlass.contrib.django.ready"]
        command += ["--import", "windlass.contrib.django.tasks", *given]
        os.execv(sys.executable, [sys.executable, *command])
