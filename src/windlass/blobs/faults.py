"""Translates failures of a disk or a bucket into Windlass errors."""

import errno
from typing import Final

from windlass.domain.values.errors import StoreUnavailable, WindlassError

METADATA: Final = "169.254.169.254"  # asked for credentials if there are none


def from_disk(error: OSError, where: str) -> StoreUnavailable:
    """Returns the error for a disk failure; a full disk has its own code."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    message = f"the disk that holds {where} is full, make room on it" if full else ""
    unavailable = StoreUnavailable(message or f"cannot use {where}: {error}", outcome_unknown=False)
    if full:
        unavailable.code = "disk_full"
    return unavailable


def from_bucket(error: Exception, where: str) -> WindlassError:
    """Returns the error for a bucket failure; the operation may or may not have taken effect."""
    text = " ".join(str(error).split("\n\n")[0].split())
    if METADATA in text:
        text = (
            "expected keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a machine that "
            "has a role; found neither"
        )
    return StoreUnavailable(f"cannot use {where}: {text}", outcome_unknown=True)
