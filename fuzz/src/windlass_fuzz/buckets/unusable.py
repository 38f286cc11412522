"""Explains why a directory cannot be a bucket, and what to do about it."""

import os
from pathlib import Path
from typing import Final

from windlass.blobs.local import from_disk
from windlass.domain.values.errors import StoreUnavailable
from windlass_fuzz.errors import InvalidSetting

REMEDY: Final = "name another with --bucket, WINDLASS_FUZZ_BUCKET or `bucket` in the solver file"


def check_directory(root: Path) -> None:
    """Raises if the path, or a folder on the way to it, is not a directory.

    A missing path is fine: the first writer creates it.
    """
    for path in (*reversed(root.parents), root):
        if path.is_symlink() and not path.exists():
            wrong = f"{path} is a symbolic link to {os.readlink(path)}, which leads nowhere"
        elif path.exists() and not path.is_dir():
            wrong = f"{path} is a file, not a directory"
        else:
            continue
        raise InvalidSetting("bucket", f"cannot use bucket {root}: {wrong}; {REMEDY}", str(root))


def unusable(error: OSError, root: Path) -> StoreUnavailable:
    """Returns the error for a bucket whose files cannot be used."""
    if not isinstance(error, PermissionError):
        return from_disk(error, str(root))
    place = error.filename or root
    message = (
        f"cannot use bucket {root}: this user has no permission for {place}; change its owner or "
        f"mode, or {REMEDY}"
    )
    return StoreUnavailable(message, outcome_unknown=False)
