"""Files that jobs leave and need: hashed, sent and placed without blocking the loop."""

import hashlib
import mimetypes
from pathlib import Path

from windlass.domain.values.errors import InvalidInput
from windlass.ports.clock import Clock
from windlass.ports.gateway import AttemptGateway, Holder

CHUNK = 1 << 20


async def send(
    gateway: AttemptGateway, holder: Holder, name: str, path: Path, clock: Clock
) -> None:
    """Hashes a file and uploads it."""
    digest = await hash_file(path, clock)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    await gateway.put_artifact(holder, name, path, digest, kind)


async def hash_file(path: Path, clock: Clock) -> str:
    """Returns the SHA-256 of a file; the loop goes on between its pieces."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
            await clock.sleep_ms(0)
    return digest.hexdigest()


async def place(
    gateway: AttemptGateway, holder: Holder, job: int, artifact: str, folder: Path, path: str
) -> None:
    """Downloads an artifact to `path` below `folder`."""
    await gateway.get_artifact(holder, job, artifact, _target(folder, path))


def _target(folder: Path, path: str) -> Path:
    root = folder.resolve()
    target = (root / path).resolve()
    if target == root or not target.is_relative_to(root):
        raise InvalidInput("inputs", "a path inside the scratch directory", path)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return target
