"""Files of this machine among arguments and results."""

from pathlib import Path


class LocalFile:
    """A file among encoded values: a client uploads it, a worker keeps it as an artifact."""

    def __init__(self, path: Path) -> None:
        self.path = path
