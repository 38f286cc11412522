"""Collects inputs within limits, each content once."""

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.config.seed_settings import SeedSettings

NAME_LENGTH: Final = 32


class SeedsRefused(WindlassError):
    """Seeds cannot be used; the message says why. The run continues without them."""

    code = "seeds_refused"


class SeedLimits(NamedTuple):
    """The number of inputs, the size of each, and the total size."""

    inputs: int
    largest: int
    size: int


def limits_of(settings: SeedSettings) -> SeedLimits:
    return SeedLimits(settings.inputs, settings.largest_bytes, settings.size_bytes)


class SeedFolder:
    """Writes inputs to a folder under names that depend on their content alone."""

    def __init__(self, folder: Path, limits: SeedLimits) -> None:
        self.folder = folder
        self.limits = limits
        self.skipped = 0
        self._left = limits.size
        self._count = 0
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, data: bytes) -> None:
        """Writes an input; skips one that is too large, and raises if the total is too much."""
        if len(data) > self.limits.largest:
            self.skipped += 1
            return
        path = self.folder / hashlib.sha256(data).hexdigest()[:NAME_LENGTH]
        if path.exists():
            return
        self._left -= len(data)
        self._count += 1
        if self._count > self.limits.inputs or self._left < 0:
            raise SeedsRefused(
                f"more than {self.limits.inputs} inputs or {self.limits.size} bytes; "
                "raise seeds.inputs and seeds.size to use them"
            )
        path.write_bytes(data)
