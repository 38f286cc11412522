"""Declares what fuzzing adds to a server."""

from typing import TYPE_CHECKING, Final

from windlass.server.plugins import ServerContext, ServerPart
from windlass_fuzz.server.metrics import METRICS, families
from windlass_fuzz.server.routes import routes

if TYPE_CHECKING:
    from windlass_fuzz.server.reader import BucketReader


def _start(context: ServerContext) -> "BucketReader | None":
    """Returns the reader of solvers' states; most servers show none, and do not load it."""
    files = context.options.get("fuzz", ())
    if not files:
        return None
    from windlass_fuzz.server.reader import BucketReader

    return BucketReader(files, context.data, context.clock)


PART: Final = ServerPart(routes=tuple(routes), start=_start, metrics=METRICS, families=families)
