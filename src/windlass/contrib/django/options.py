"""The settings in `settings.WINDLASS`."""

from typing import Any, Final

import msgspec
from django.conf import settings

from windlass.domain.values.conversion import convert

NAME: Final = "WINDLASS"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """`SERVER` and `TOKEN`, by default those of `windlass.Client()`; the `DATABASE` of the queue.

    `TIMEOUT` is the longest time for a submission. If no server accepts it in that time, it waits
    in the folder `SPOOL`, if that is set.
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
