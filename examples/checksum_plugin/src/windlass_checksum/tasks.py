"""What workers run."""

import hashlib
from pathlib import Path

import windlass


@windlass.task(name="checksum.file", timeout="10m")
def checksum(file: Path) -> str:
    """Returns the SHA-256 of a file, which comes with the job."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
