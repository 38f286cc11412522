"""The stored record of one bug."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from windlass.fuzzing.state.documents import Codec, MalformedFile, Version

State = Literal["open", "closed"]
SHOWN: Final = 20  # how many commits that showed the bug are listed
OUTPUT: Final = 4_000  # characters of the program's output
EXCERPT: Final = 1_000  # an input of at most this many bytes is shown


class Finding(msgspec.Struct, kw_only=True, frozen=True):
    """A bug. `input` is the smallest input that shows it, stored next to the record.

    `excerpt` is that input if it is short text. `shown` of `tried` runs failed.
    `introduced_by` is the first built commit that shows the bug, and `last_good` the newest
    one before it that does not; without `last_good` the bug is as old as the oldest build.
    `old` means that the fuzzed commit did not introduce it.
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
    """Returns the record after another sighting: keeps the smaller input, reopens a closed one."""
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
        # The first search for the origin had the oldest builds, so it stays.
        introduced_by=known.introduced_by or new.introduced_by,
        introduced_subject=known.introduced_subject or new.introduced_subject,
        last_good=known.last_good or new.last_good,
    )  # fmt: skip


def excerpt_of(data: bytes) -> str:
    """Returns an input as text, or "" if it is long or not text."""
    if len(data) > EXCERPT:
        return ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return ""
    return text if all(c.isprintable() or c in "\n\t" for c in text) else ""


def mark_closed(known: Finding, commit: str, now_ms: int) -> Finding:
    """Returns the record with the state closed as of this commit."""
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
