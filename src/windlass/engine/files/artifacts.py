"""Artifacts: files under their own SHA-256, which we verify before anyone can read one."""

import hashlib
import re
from collections.abc import AsyncIterator
from typing import Final

from windlass.domain.values.errors import InvalidInput
from windlass.ports.blobs import Blobs

FOLDER: Final = "artifacts"
UPLOADS: Final = "uploads"
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def check_digest(sha256: str, field: str = "sha256") -> str:
    """Returns the digest if it is valid."""
    if not isinstance(sha256, str) or not _DIGEST.match(sha256):
        raise InvalidInput(field, "a SHA-256 as 64 lower-case hexadecimal digits", sha256)
    return sha256


def artifact_key(sha256: str) -> str:
    """Returns the blob key of a file with this digest."""
    return f"{FOLDER}/{check_digest(sha256)[:2]}/{sha256}"


def digest_of(key: str) -> str:
    """Returns the digest of a local file."""
    return key.rpartition("/")[2]


def upload_key(job: int, attempt: int, name: str) -> str:
    """Returns the blob key to which a worker may upload a file directly."""
    named = hashlib.sha256(name.encode()).hexdigest()
    return f"{UPLOADS}/{job}/{attempt}/{named}"


async def put_artifact(
    blobs: Blobs, chunks: AsyncIterator[bytes], sha256: str, size: int | None = None
) -> int:
    """Stores a file under its digest and returns its size; refuses a file with another digest."""
    return await blobs.put_stream(artifact_key(sha256), proved(chunks, sha256, size))


async def adopt_upload(blobs: Blobs, key: str, sha256: str, size: int | None = None) -> int:
    """Stores a file that a worker uploaded directly under `key`.

    We read it once and store what we read, so nobody can exchange it in between.
    """
    kept = await put_artifact(blobs, blobs.stream(key), sha256, size)
    await blobs.delete([key])
    return kept


async def proved(
    chunks: AsyncIterator[bytes], sha256: str, size: int | None
) -> AsyncIterator[bytes]:
    """Yields the same chunks; raises at the end unless they match the declared file."""
    digest = hashlib.sha256()
    seen = 0
    async for chunk in chunks:
        digest.update(chunk)
        seen += len(chunk)
        if size is not None and seen > size:
            raise InvalidInput("size", f"the declared {size} bytes", "more")
        yield chunk
    if size is not None and seen != size:
        raise InvalidInput("size", f"the declared {size} bytes", seen)
    if digest.hexdigest() != sha256:
        raise InvalidInput("sha256", "the digest of the bytes that were sent", sha256)
