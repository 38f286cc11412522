"""What failures of a disk or a bucket mean to those who asked."""

import errno
from typing import Final

from windlass.domain.values.errors import StoreUnavailable, WindlassError

METADATA: Final = "169.254.169.254"  # where the library asks for keys when it was given none


def from_disk(error: OSError, where: str) -> StoreUnavailable:
    """A full disk has a code of its own: there is something an operator can do."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    message = f"the disk that holds {where} is full, make room on it" if full else ""
    unavailable = StoreUnavailable(message or f"cannot use {where}: {error}", outcome_unknown=False)
    if full:
        unavailable.code = "disk_full"
    return unavailable


def from_bucket(error: Exception, where: str) -> WindlassError:
    """One line of what the client library said; whether it acted is not known."""
    text = " ".join(str(error).split("\n\n")[0].split())
    if METADATA in text:
        text = (
            "expected keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a machine that "
            "has a role; found neither"
        )
    return StoreUnavailable(f"cannot use {where}: {text}", outcome_unknown=True)
