"""Does the server keep its conditions? One that ignores them must not be shared."""

from typing import Final

from windlass.domain.values.errors import Conflict
from windlass.fuzzing.bucket import Bucket, Busy, Changed, Unclear
from windlass.fuzzing.chain import Around
from windlass.fuzzing.layout import state_key

TRIES: Final = 3


async def probe(bucket: Bucket, solver: str, around: Around) -> None:
    """Write where it must be refused; raises `Conflict` if it is not.

    A server in trouble tells nothing about conditions: what is unclear is left to the first
    write that matters.
    """
    if not bucket.endures:
        return
    for _ in range(TRIES):
        key = state_key(solver, f"probe-{around.nonce()}")
        try:
            await _try(bucket, key)
            return
        except (Changed, Busy):
            continue  # nobody else knows this key, so once may be bad luck
        except Unclear:
            return
        finally:
            await bucket.delete([key])
    raise Conflict(
        "conditions_refused",
        f"expected {bucket.name} to write a new object under a condition, but it refused "
        f"{TRIES} times; use a server with conditional writes, or a directory",
    )


async def _try(bucket: Bucket, key: str) -> None:
    made = await bucket.put_if(key, b"1", expected=None)
    await _refused(bucket, key, None, "If-None-Match")
    changed = await bucket.put_if(key, b"2", expected=made.etag)
    await _refused(bucket, key, made.etag, "If-Match")
    _tell_apart(made.etag, changed.etag, bucket.name)


async def _refused(bucket: Bucket, key: str, expected: str | None, header: str) -> None:
    try:
        await bucket.put_if(key, b"3", expected=expected)
    except (Changed, Busy):
        return
    raise Conflict(
        "conditions_ignored",
        f"expected {bucket.name} to refuse a write whose {header} does not hold, but it was "
        "carried out: two runs would overwrite each other; use a server that honours "
        "conditional writes, or a directory",
    )


def _tell_apart(first: str, second: str, name: str) -> None:
    if not first or first == second:
        raise Conflict(
            "etags_missing",
            f"expected {name} to give an ETag of its own to each content, got {first!r} twice; "
            "use a server that honours conditional writes, or a directory",
        )
