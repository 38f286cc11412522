"""What the command line asks of every section."""

from pathlib import Path

import msgspec


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`quick` is for a first look, `long` adds what takes minutes; `folder` is scratch."""

    folder: Path
    quick: bool = False
    long: bool = False

    def pick(self, usual: int, quick: int) -> int:
        """A size for the usual run, or the one for a quick look."""
        return quick if self.quick else usual
