"""Checks the arguments of the engine's commands before any transaction begins.

So a value that a store could not keep is refused by name, and never reaches a batch with the calls
of others.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from windlass.domain.tasks.worker_lists import check_lists, check_own_lists
from windlass.domain.values.errors import InvalidInput
from windlass.messages.sync import Finished, Held, Released, Started, SyncRequest

MAX_INT: Final = 2**62
MAX_COUNT: Final = 2**31 - 1  # limit of stored attempt numbers and job counts
TEXT_LIMIT: Final = 1_000
METADATA_LIMIT: Final = 256 * 1024

_encode = msgspec.json.Encoder(order="deterministic").encode

_Item = Started | Finished | Released | Held


def check_id(field: str, value: object) -> None:
    """Raises `InvalidInput` unless this can be the number of a job, worker or attempt."""
    if not _is_number(value, 1):
        raise InvalidInput(field, f"an integer from 1 to {MAX_INT}", value)


def check_whole(field: str, value: object) -> None:
    """Raises `InvalidInput` unless this is a whole number; its limits depend on the job."""
    if type(value) is not int:
        raise InvalidInput(field, "an integer", value)


def check_text(field: str, value: str | None) -> None:
    """Raises `InvalidInput` for text that not every store can keep, for example in reasons."""
    if value is None:
        return
    if len(value) > TEXT_LIMIT or "\x00" in value or not _is_unicode(value):
        expected = f"text of at most {TEXT_LIMIT} characters without NUL and lone surrogates"
        raise InvalidInput(field, expected, value)


def check_metadata(metadata: Mapping[str, object], field: str = "metadata") -> None:
    """Raises `InvalidInput` for metadata that is not JSON or too large."""
    try:
        body = _encode(metadata)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidInput(field, "a JSON object", str(error)) from None
    if len(body) > METADATA_LIMIT:
        raise InvalidInput(field, f"at most {METADATA_LIMIT} bytes as JSON", f"{len(body)} bytes")
    if b"\\u0000" in body:
        raise InvalidInput(field, "text without NUL characters", "a NUL character")
    check_lists(metadata, field)


def json_value(field: str, value: object, limit: int, option: str = "") -> bytes:
    """Returns a value as JSON; raises `InvalidInput` for another one, or a larger one.

    `option` is the name of the option that sets the limit.
    """
    try:
        body = msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidInput(field, "a JSON value", str(error)) from None
    if len(body) > limit:
        expected = f"at most {limit:,} bytes as JSON"
        if option:
            expected += f" ({option})"
        raise InvalidInput(field, expected, f"{len(body):,} bytes")
    return body


def check_reported(metadata: Mapping[str, object]) -> None:
    """Raises `InvalidInput` for metadata that a worker cannot report about itself."""
    check_metadata(metadata)
    check_own_lists(metadata, "metadata")


def check_sync(request: SyncRequest, longest_wait_ms: int, last_epoch: int) -> None:
    """Raises `InvalidInput` for an invalid sync."""
    if not _is_number(request.wait_ms, 0) or request.wait_ms > longest_wait_ms:
        expected = f"from 0 to the heartbeat interval ({longest_wait_ms})"
        raise InvalidInput("wait_ms", expected, request.wait_ms)
    for field in ("seq", "received", "incarnation"):
        value = getattr(request, field)
        if not _is_number(value, 0):
            raise InvalidInput(field, f"an integer from 0 to {MAX_INT}", value)
    for field, most in (("want", MAX_COUNT), ("epoch", last_epoch)):
        value = getattr(request, field)
        if not _is_number(value, 0, most):
            raise InvalidInput(field, f"an integer from 0 to {most}", value)
    for field in ("started", "finished", "released", "held"):
        items = getattr(request, field)
        if items:
            check_items(field, items)
    if request.metadata is not None:
        check_reported(request.metadata)


def check_items(field: str, items: Sequence[_Item]) -> None:
    """Raises `InvalidInput` unless each of these can be an attempt."""
    for index, item in enumerate(items):
        if not (0 < item.job <= MAX_INT and 0 < item.attempt <= MAX_COUNT):
            check_id(f"{field}[{index}].job", item.job)
            expected = f"an integer from 1 to {MAX_COUNT}"
            raise InvalidInput(f"{field}[{index}].attempt", expected, item.attempt)


def _is_number(value: object, least: int, most: int = MAX_INT) -> bool:
    return type(value) is int and least <= value <= most


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
