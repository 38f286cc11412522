"""Which combinations of a commit were built: one object for each commit, next to its builds.

It is written after the builds themselves, and expires with them.
"""

from collections.abc import Mapping

import msgspec

from windlass_fuzz.buckets.bucket import Bucket
from windlass_fuzz.buckets.layout import combinations_key


class BuiltCombinations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The combinations that were built, and why others were not.

    `lost` were built, but their archives are gone from the bucket; only a reader knows that.
    """

    built: tuple[str, ...] = ()
    failed: Mapping[str, str] = {}
    lost: tuple[str, ...] = ()


async def read_built(bucket: Bucket, solver: str, commit: str) -> BuiltCombinations:
    """Returns what was built of a commit; nothing if the object is missing or damaged."""
    stored = await bucket.get(combinations_key(solver, commit))
    try:
        found = b"{}" if stored is None else stored.body
        return msgspec.json.decode(found, type=BuiltCombinations)
    except msgspec.MsgspecError:
        return BuiltCombinations()


async def write_built(bucket: Bucket, solver: str, commit: str, made: BuiltCombinations) -> None:
    """Records what was built of a commit."""
    await bucket.put(combinations_key(solver, commit), msgspec.json.encode(made))
