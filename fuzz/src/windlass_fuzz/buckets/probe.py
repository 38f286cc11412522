"""Checks that the server honours conditional writes. A server that ignores them must not be
shared.
"""

from collections.abc import Callable
from typing import Final

from windlass.domain.values.errors import Conflict
from windlass_fuzz.buckets.bucket import (
    Bucket,
    ConcurrentWrite,
    OutcomeUnknown,
    PreconditionFailed,
)
from windlass_fuzz.buckets.layout import state_key

TRIES: Final = 3
STALE_MS: Final = 3_600_000


async def probe(bucket: Bucket, solver: str, nonce: Callable[[], str]) -> None:
    """Makes writes that must be refused; raises `Conflict` if the server accepts them.

    A failing server proves nothing about conditions, so an unknown outcome ends the probe; the
    first real write will show.
    """
    if not bucket.persistent:
        return
    for _ in range(TRIES):
        key = state_key(solver, f"probe-{nonce()}")
        try:
            await _try(bucket, key)
            return
        except (PreconditionFailed, ConcurrentWrite):
            continue  # no other process uses this key, so one refusal may be a coincidence
        except OutcomeUnknown:
            return
        finally:
            await bucket.delete([key])
    raise Conflict(
        "conditions_refused",
        f"{bucket.name} refused {TRIES} conditional writes of new objects; use a server that "
        "supports conditional writes, or a directory",
    )


async def sweep_probes(bucket: Bucket, solver: str, now_ms: int) -> int:
    """Deletes what probes left behind when they were killed; returns how many there were."""
    folder = state_key(solver, "").rstrip("/")
    old = [
        item.key
        async for item in bucket.list(folder)
        if item.key.startswith(f"{folder}/probe-") and item.modified_ms < now_ms - STALE_MS
    ]
    await bucket.delete(old)
    return len(old)


async def _try(bucket: Bucket, key: str) -> None:
    made = await bucket.put_if(key, b"1", expected=None)
    await _expect_refusal(bucket, key, None, "If-None-Match")
    changed = await bucket.put_if(key, b"2", expected=made.etag)
    await _expect_refusal(bucket, key, made.etag, "If-Match")
    _check_etags(made.etag, changed.etag, bucket.name)


async def _expect_refusal(bucket: Bucket, key: str, expected: str | None, header: str) -> None:
    try:
        await bucket.put_if(key, b"3", expected=expected)
    except (PreconditionFailed, ConcurrentWrite):
        return
    raise Conflict(
        "conditions_ignored",
        f"{bucket.name} ignores {header}: it accepted a write that it had to refuse, so two "
        "runs would overwrite each other's state; use a server that supports conditional "
        "writes, or a directory",
    )


def _check_etags(first: str, second: str, name: str) -> None:
    if not first or first == second:
        raise Conflict(
            "etags_missing",
            f"{name} returned the same ETag ({first!r}) for two different contents; use a "
            "server that supports conditional writes, or a directory",
        )
