"""The state files: the seed's shapes, and what else is kept in them.

`state.json` and `build-queue.json` are objects, so their version stands in a field of them;
the schedule is a bare array, so its version stands in the attributes of the object, and its
sequence number once more in the blank space behind the array: servers derive ETags from
bodies alone, and a body that comes back must not look like the one from before.

Fields that are not known here are kept as they are.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from windlass.fuzzing.buckets.layout import is_commit

RECENT: Final = 32  # how many writers may come in between while somebody waits for an answer
SEEN: Final = 1_000  # how many commits are remembered as having been queued once

_NUMBER: Final = re.compile(rb"\t[\t ]{0,62}\n")

T = TypeVar("T")


class Version(msgspec.Struct, frozen=True):
    """Which write this is. `recent` are the nonces of the writes before, newest last."""

    seq: int = 0
    nonce: str = ""
    recent: tuple[str, ...] = ()

    def next(self, nonce: str) -> "Version":
        known = (*self.recent, self.nonce) if self.nonce else self.recent
        return Version(self.seq + 1, nonce, known[-RECENT:])

    def includes(self, nonce: str) -> bool:
        """Whether a write is this one or among those that led to it."""
        return nonce == self.nonce or nonce in self.recent


class State(NamedTuple):
    """`state.json`: up to where the manager has looked, and when it did so."""

    last_checked_commit: str | None = None
    checked_at_ms: int = 0
    rest: Mapping[str, Any] = {}


class BuildQueue(NamedTuple):
    """`build-queue.json`: what waits, is built, has failed; `seen` was queued at some time."""

    queue: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    rest: Mapping[str, Any] = {}


class Entry(NamedTuple):
    """One commit of the schedule."""

    hash: str
    fuzz_count: int = 0
    rest: Mapping[str, Any] = {}


Schedule = tuple[Entry, ...]


class Lease(msgspec.Struct, frozen=True):
    """A commit that somebody works on until a time; `tries` counts how often it was given out."""

    holder: str
    token: str
    until_ms: int
    tries: int = 1


class Leases(NamedTuple):
    """`leases.json`: who builds and who fuzzes what."""

    build: Mapping[str, Lease] = {}
    fuzz: Mapping[str, Lease] = {}
    rest: Mapping[str, Any] = {}


class MalformedFile(ValueError):
    """A file that is not in its shape; says where."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How one kind of file is read and written."""

    file: str
    empty: T
    decode: Callable[[bytes, Mapping[str, str]], tuple[T, Version]]
    encode: Callable[[T, Version], tuple[bytes, dict[str, str]]]


def parse(body: bytes) -> Any:
    """JSON, or `Unreadable`."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFile(f"it is no JSON: {error}") from None


def _fields(body: bytes) -> dict[str, Any]:
    value = parse(body)
    if not isinstance(value, dict):
        raise MalformedFile("expected an object")
    return value


def _version(fields: dict[str, Any]) -> Version:
    """A file as somebody else wrote it has none, and counts as the first."""
    try:
        return msgspec.convert(fields.pop("version", {}), Version)
    except msgspec.ValidationError as error:
        raise MalformedFile(f"version: {error}") from None


def _commits(fields: dict[str, Any], name: str) -> tuple[str, ...]:
    value = fields.pop(name, [])
    if not isinstance(value, list) or not all(map(is_commit, value)):
        raise MalformedFile(f"expected {name} to be a list of commits")
    if len(set(value)) != len(value):
        raise MalformedFile(f"expected {name} to hold each commit once")
    return tuple(value)


def _read_state(body: bytes, _: Mapping[str, str]) -> tuple[State, Version]:
    fields = _fields(body)
    version = _version(fields)
    last = fields.pop("last_checked_commit", None) or None
    at = fields.pop("checked_at_ms", 0)
    if last is not None and not is_commit(last):
        raise MalformedFile("expected last_checked_commit to be a commit")
    if isinstance(at, bool) or not isinstance(at, int) or at < 0:
        raise MalformedFile("expected checked_at_ms to be milliseconds since 1970")
    return State(last, at, fields), version


def _write_state(state: State, version: Version) -> tuple[bytes, dict[str, str]]:
    shape = {"last_checked_commit": state.last_checked_commit}
    return _object(shape, {"checked_at_ms": state.checked_at_ms}, state.rest, version)


def _read_queue(body: bytes, _: Mapping[str, str]) -> tuple[BuildQueue, Version]:
    fields = _fields(body)
    version = _version(fields)
    queue, built, failed, seen = (
        _commits(fields, name) for name in ("queue", "built", "failed", "seen")
    )
    found = BuildQueue(queue, built, failed, seen, fields)
    places = (*found.queue, *found.built, *found.failed)
    if len(set(places)) != len(places):
        raise MalformedFile("expected each commit to stand in one of queue, built and failed")
    return found, version


def _write_queue(queue: BuildQueue, version: Version) -> tuple[bytes, dict[str, str]]:
    shape = {"queue": queue.queue, "built": queue.built, "failed": queue.failed}
    return _object(shape, {"seen": queue.seen[-SEEN:]}, queue.rest, version)


def _object(
    shape: Mapping[str, Any], more: Mapping[str, Any], rest: Mapping[str, Any], version: Version
) -> tuple[bytes, dict[str, str]]:
    """The seed's fields first, then ours, then those of others."""
    document = {**shape, **more, **rest, "version": version}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n", {}


def _read_schedule(body: bytes, attributes: Mapping[str, str]) -> tuple[Schedule, Version]:
    items = parse(body)
    if not isinstance(items, list):
        raise MalformedFile("expected an array")
    entries = tuple(_entry(item) for item in items)
    if len({entry.hash for entry in entries}) != len(entries):
        raise MalformedFile("expected each commit once")
    version = _version_of_attributes(attributes)
    # A copy may have lost its attributes; the number behind the array goes along with it.
    seq = max(version.seq, _seq_behind(body))
    return entries, Version(seq, version.nonce, version.recent)


def _entry(item: object) -> Entry:
    if not isinstance(item, dict) or not is_commit(item.get("hash")):
        raise MalformedFile('expected entries such as {"hash": "…", "fuzz_count": 0}')
    count = item.get("fuzz_count", 0)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise MalformedFile(f"expected fuzz_count of {item['hash']} to be a number from 0")
    rest = {name: value for name, value in item.items() if name not in ("hash", "fuzz_count")}
    return Entry(item["hash"], count, rest)


def _write_schedule(schedule: Schedule, version: Version) -> tuple[bytes, dict[str, str]]:
    items = [{"hash": e.hash, "fuzz_count": e.fuzz_count, **e.rest} for e in schedule]
    body = msgspec.json.format(msgspec.json.encode(items), indent=2)
    return body + _blank(version.seq), attributes_of(version)


def _blank(seq: int) -> bytes:
    """A number as blank space, which JSON has no eyes for."""
    return f"{seq:b}".replace("0", " ").replace("1", "\t").encode() + b"\n"


def _seq_behind(body: bytes) -> int:
    blank = body.rpartition(b"]")[2]
    if not _NUMBER.fullmatch(blank):
        return 0
    return int(blank.strip(b"\n").replace(b" ", b"0").replace(b"\t", b"1"), 2)


def attributes_of(version: Version) -> dict[str, str]:
    """A version as the attributes of an object."""
    return {
        "windlass-seq": str(version.seq),
        "windlass-nonce": version.nonce,
        "windlass-recent": ",".join(version.recent),
    }


def _version_of_attributes(attributes: Mapping[str, str]) -> Version:
    """Servers differ in how they spell names of attributes."""
    known = {name.lower(): value for name, value in attributes.items()}
    seq = known.get("windlass-seq", "0")
    if not (seq.isascii() and seq.isdigit()):
        raise MalformedFile("expected its attribute windlass-seq to be a number")
    recent = tuple(one for one in known.get("windlass-recent", "").split(",") if one)
    return Version(int(seq), known.get("windlass-nonce", ""), recent)


def _read_leases(body: bytes, _: Mapping[str, str]) -> tuple[Leases, Version]:
    fields = _fields(body)
    version = _version(fields)
    try:
        build = msgspec.convert(fields.pop("build", {}), dict[str, Lease])
        fuzz = msgspec.convert(fields.pop("fuzz", {}), dict[str, Lease])
    except msgspec.ValidationError as error:
        raise MalformedFile(str(error)) from None
    return Leases(build, fuzz, fields), version


def _write_leases(leases: Leases, version: Version) -> tuple[bytes, dict[str, str]]:
    return _object({"build": leases.build, "fuzz": leases.fuzz}, {}, leases.rest, version)


STATE: Final = Codec("state.json", State(), _read_state, _write_state)
QUEUE: Final = Codec("build-queue.json", BuildQueue(), _read_queue, _write_queue)
SCHEDULE: Final[Codec[Schedule]] = Codec(
    "fuzzing-schedule.json", (), _read_schedule, _write_schedule
)
LEASES: Final = Codec("leases.json", Leases(), _read_leases, _write_leases)
