"""What `settings.WINDLASS` may say."""

from typing import Any, Final

import msgspec
from django.conf import settings

from windlass.domain.values.conversion import convert

NAME: Final = "WINDLASS"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """`SERVER` and `TOKEN`, else what `windlass.Client()` finds; the `DATABASE` of the queue.

    A submission to the server may take `TIMEOUT` in all; if no server takes it in that time, it
    waits in the folder `SPOOL`, if there is one.
    """

    server: str | None = None
    token: str | None = None
    timeout: float | str | None = None
    spool: str | None = None
    database: str = "default"  # which of Django's connections is to the queue's database


def read_options() -> Options:
    """Returns the settings; raises `InvalidInput` for one that there is not."""
    given: dict[str, Any] = getattr(settings, NAME, {})
    return convert(given, Options, f"settings.{NAME}")
