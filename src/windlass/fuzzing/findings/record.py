"""One bug, with everything known of it, as it is kept in the bucket."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from windlass.fuzzing.state.documents import Codec, MalformedFile, Version

State = Literal["open", "closed"]
SHOWN: Final = 20  # commits in which a bug was seen that are remembered
OUTPUT: Final = 4_000  # characters of what the program said
EXCERPT: Final = 1_000  # bytes of an input that is shown


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """A bug; `input` is the name of the smallest input that shows it, beside the record.

    `excerpt` is that input as text, if it is short and text. `shown` of `tried` runs failed.
    `introduced_by` is the first of the built commits that
    shows it and `last_good` the newest before that which does not; without the latter the
    bug is as old as the oldest build. `old` says that the commit whose fuzzing found it is not
    to blame.
    """

    key: str
    title: str
    state: State = "open"
    engine: str
    command: list[str]
    input: str
    size: int
    excerpt: str = ""
    shown: int
    tried: int
    output: str = ""
    found_in: str
    found_at_ms: int
    times: int = 1
    seen_in: list[str] = []
    old: bool = False
    introduced_by: str | None = None
    introduced_subject: str = ""
    last_good: str | None = None
    closed_in: str | None = None
    closed_at_ms: int = 0
    reopened: int = 0
    issue: str = ""
    issue_closed: bool = False


def seen_again(known: Finding | None, new: Finding) -> Finding:
    """What is known of a bug after it was met once more: the smaller input stays.

    A closed one is open again: it has come back.
    """
    if known is None:
        return msgspec.structs.replace(new, seen_in=[new.found_in])
    better = new if new.size < known.size else known
    seen = [commit for commit in known.seen_in if commit != new.found_in]
    return msgspec.structs.replace(
        known,
        input=better.input, size=better.size, excerpt=better.excerpt, shown=better.shown,
        tried=better.tried, output=better.output, command=better.command,
        times=known.times + 1,
        seen_in=[*seen, new.found_in][-SHOWN:],
        state="open",
        closed_in=None,
        closed_at_ms=0,
        reopened=known.reopened + (known.state == "closed"),
        # The place of its origin is as good as the oldest commit that was asked.
        introduced_by=known.introduced_by or new.introduced_by,
        introduced_subject=known.introduced_subject or new.introduced_subject,
        last_good=known.last_good or new.last_good,
    )  # fmt: skip


def excerpt_of(data: bytes) -> str:
    """An input as a person can read it; nothing if it is long, or no text."""
    if len(data) > EXCERPT:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return text if all(c.isprintable() or c in "\n\t" for c in text) else ""


def mark_closed(known: Finding, commit: str, now_ms: int) -> Finding:
    """It is gone in this commit."""
    if known.state == "closed":
        return known
    return msgspec.structs.replace(known, state="closed", closed_in=commit, closed_at_ms=now_ms)


def _decode(body: bytes, _: Mapping[str, str]) -> tuple[Finding | None, Version]:
    try:
        fields = msgspec.json.decode(body, type=dict[str, Any])
        version = msgspec.convert(fields.pop("version", {}), Version)
        return msgspec.convert(fields, Finding), version
    except msgspec.MsgspecError as error:
        raise MalformedFile(str(error)) from None


def _encode(finding: Finding | None, version: Version) -> tuple[bytes, dict[str, str]]:
    document = {**msgspec.to_builtins(finding), "version": msgspec.to_builtins(version)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n", {}


FINDING: Final[Codec[Finding | None]] = Codec("finding.json", None, _decode, _encode)
