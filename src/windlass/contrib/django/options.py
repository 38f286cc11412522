"""The settings in `settings.WINDLASS`."""

from typing import Any, Final

import msgspec
from django.conf import settings

from windlass.domain.values.conversion import convert

NAME: Final = "WINDLASS"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """`SERVER` and `TOKEN` default to those of `windlass.Client()`; `DATABASE` is the queue's.
    `TIMEOUT` limits a submission. If no server accepts it in that time, it waits in the folder
    `SPOOL`, if set.
    """

    server: str | None = None
    token: str | None = None
    timeout: float | str | None = None
    spool: str | None = None
    database: str = "default"  # which of Django's connections is to the queue's database


def read_options() -> Options:
    """Returns the settings; raises `InvalidInput` for an unknown one."""
    given: dict[str, Any] = getattr(settings, NAME, {})
    return convert(given, Options, f"settings.{NAME}")
