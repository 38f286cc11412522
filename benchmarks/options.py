"""What the command line asks of every section."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

MEMORY = Path("/dev/shm")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """`quick` is for a first look, `long` adds what takes minutes; `folder` is scratch."""

    folder: Path
    quick: bool = False
    long: bool = False

    def pick(self, usual: int, quick: int) -> int:
        """A size for the usual run, or the one for a quick look."""
        return quick if self.quick else usual

    @contextmanager
    def no_disk(self) -> Iterator[Path]:
        """A folder in memory, where a commit costs next to nothing, if there is one."""
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else self.folder) as name:
            yield Path(name)
