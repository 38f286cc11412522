"""Writes and reads the ids of a submission's jobs, which stores keep as JSON."""

from collections.abc import Iterable
from typing import Any

import msgspec

from windlass.domain.rows.records import KeyRow, Spans

_decode = msgspec.json.Decoder(Spans).decode


def as_key(row: Iterable[Any]) -> KeyRow:
    """Makes a `KeyRow` from its columns."""
    namespace, key, job, digest, spans = row
    return KeyRow(namespace, key, job, digest, None if spans is None else _decode(spans))


def spans_text(row: KeyRow) -> str | None:
    """Returns the ids as text, or None for a job's own key."""
    return None if row.spans is None else msgspec.json.encode(row.spans).decode()
