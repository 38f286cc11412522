"""What failures of a disk or a bucket mean to those who asked."""

import errno

from windlass.domain.errors import StoreUnavailable, WindlassError


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
    return StoreUnavailable(f"cannot use {where}: {text}", outcome_unknown=True)
