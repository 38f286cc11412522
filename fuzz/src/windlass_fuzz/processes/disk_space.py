"""Turns "no space left on device" into an error a person can act on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from windlass.domain.values.errors import WindlassError


class DiskFull(WindlassError):
    """This machine has no disk space left; nothing else is wrong."""

    code = "disk_full"


@contextmanager
def report_disk_full(where: Path) -> Iterator[None]:
    """Raises `DiskFull` in place of the operating system's errors about a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise DiskFull(
                f"no disk space left at {where} ({error.strerror}); free some space, or "
                "choose another folder with --work"
            ) from None
        raise
