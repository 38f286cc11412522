"""How a worker is started."""

from pathlib import Path
from typing import Any

import msgspec


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is a directory of the agent's own. `metadata` is told beside what is found.

    `passes` names environment variables that jobs see as well; `code` is the single-use
    code of a first enrolment; `drain_limit_ms` is how long a drain waits for jobs.
    """

    name: str
    state: Path
    slots: int = 1
    metadata: dict[str, Any] = {}
    passes: tuple[str, ...] = ()
    code: str | None = None
    drain_limit_ms: int = 60_000
