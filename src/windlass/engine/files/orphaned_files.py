"""Removes files that nothing refers to: left by a crash, a refused upload or a removed job."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from windlass.engine.attempts import log_segments as segments
from windlass.engine.files import artifacts, stacks
from windlass.engine.files.merge_segments import FragmentedLogs
from windlass.ports.blobs import BlobInfo, Blobs
from windlass.store.store import Store

AT_ONCE: Final = 500
# Uploads that were never adopted, stacks that nobody took, and partly written files from a crash.
UNFINISHED: Final = (artifacts.UPLOADS, stacks.FOLDER, "tmp")

Judge = Callable[[Sequence[BlobInfo]], Awaitable[list[str]]]


class Swept(NamedTuple):
    """How many files were removed, and how many logs were joined."""

    removed: int
    joined: int


async def sweep_files(store: Store, blobs: Blobs, older_than_ms: int) -> Swept:
    """Removes old files without an owner and joins fragmented logs. It reads every name."""
    scattered = FragmentedLogs()

    async def unreferenced(infos: Sequence[BlobInfo]) -> list[str]:
        digests = {artifacts.digest_of(info.key): info.key for info in infos}
        used = await store.read(lambda tx: tx.files.referenced(list(digests)))
        return [key for digest, key in digests.items() if digest not in used]

    async def unknown(infos: Sequence[BlobInfo]) -> list[str]:
        scattered.see(infos)
        owners = {info.key: segments.owner_of(info.key) for info in infos}
        jobs = sorted({owner[0] for owner in owners.values() if owner})
        found = await store.read(lambda tx: tx.files.logs(jobs))
        known = {(row.job, row.attempt) for rows in found.values() for row in rows}
        return [key for key, owner in owners.items() if owner not in known]

    async def all_of(infos: Sequence[BlobInfo]) -> list[str]:
        return [info.key for info in infos]

    removed = 0
    for folder, judge in (
        (artifacts.FOLDER, unreferenced),
        (segments.FOLDER, unknown),
        *((folder, all_of) for folder in UNFINISHED),
    ):
        removed += await _sweep(blobs, folder, older_than_ms, judge)
    return Swept(removed, await scattered.join(store, blobs))


async def _sweep(blobs: Blobs, folder: str, older_than_ms: int, judge: Judge) -> int:
    removed = 0
    batch: list[BlobInfo] = []
    async for info in blobs.list(folder):
        if info.modified_ms < older_than_ms:
            batch.append(info)
        if len(batch) >= AT_ONCE:
            removed += await _remove(blobs, await judge(batch))
            batch = []
    return removed + await _remove(blobs, await judge(batch) if batch else [])


async def _remove(blobs: Blobs, keys: Sequence[str]) -> int:
    if keys:
        await blobs.delete(keys)
    return len(keys)
