"""The state files: their JSON formats, and their versions.

`state.json` and `build-queue.json` are objects and carry their version in a field. The schedule is
a bare array, so its version is in the object's attributes, and its sequence number also in the
whitespace after the array: servers derive ETags from the body alone, so a body must never repeat.

Unknown fields are preserved.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from windlass_fuzz.buckets.layout import is_commit

RECENT: Final = 32  # up to this many later writes by others, we still recognise our own
DIGITS: Final = 18  # bits of a sequence number
SICK: Final = 200  # commits whose unhealthy runs we remember
SEEN: Final = 1_000  # commits that we remember having queued

_NUMBER: Final = re.compile(rb"\t[\t ]{0,62}\n")

T = TypeVar("T")


class Version(msgspec.Struct, frozen=True):
    """Identifies a write. `recent` lists the nonces of the writes before it, newest last."""

    seq: int = 0
    nonce: str = ""
    recent: tuple[str, ...] = ()

    def next(self, nonce: str) -> "Version":
        known = (*self.recent, self.nonce) if self.nonce else self.recent
        return Version(self.seq + 1, nonce, known[-RECENT:])

    def includes(self, nonce: str) -> bool:
        """Returns whether a write is this one or one of those before it."""
        return nonce == self.nonce or nonce in self.recent


class BranchProgress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The manager's progress on a branch, if a solver has several.

    `waiting` are commits of the branch that are not built yet. A branch is not watched if it is
    `left_out` for newer ones, or if it is gone from the repository since `gone_at_ms`.
    """

    last_checked_commit: str | None = None
    checked_at_ms: int = 0
    waiting: tuple[str, ...] = ()
    left_out: bool = False
    gone_at_ms: int = 0

    @property
    def watched(self) -> bool:
        return not self.left_out and not self.gone_at_ms


class State(NamedTuple):
    """`state.json`: the last commit that the manager checked, and when.

    With several branches, these belong to the first; `branches` has all, in order.
    """

    last_checked_commit: str | None = None
    checked_at_ms: int = 0
    rest: Mapping[str, Any] = {}
    branches: Mapping[str, BranchProgress] = {}

    @property
    def watched(self) -> tuple[str, ...]:
        """Returns the branches that are watched, in order; none if there is only one."""
        return tuple(name for name, one in self.branches.items() if one.watched)


class BuildQueue(NamedTuple):
    """`build-queue.json`: queued, built and failed commits; `seen` were queued at some time."""

    queue: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    rest: Mapping[str, Any] = {}


class Entry(NamedTuple):
    """One commit of the schedule; `branches` is empty if the solver has only one."""

    hash: str
    fuzz_count: int = 0
    rest: Mapping[str, Any] = {}
    branches: tuple[str, ...] = ()


Schedule = tuple[Entry, ...]


class Lease(msgspec.Struct, frozen=True):
    """A commit that someone works on until a given time; `tries` counts its leases so far.

    `process` is the process that works on it, "" if its steps are different processes.
    """

    holder: str
    token: str
    until_ms: int
    tries: int = 1
    process: str = ""


class Leases(NamedTuple):
    """`leases.json`: who builds and who fuzzes which commit, and who triages which bug."""

    build: Mapping[str, Lease] = {}
    fuzz: Mapping[str, Lease] = {}
    rest: Mapping[str, Any] = {}
    triage: Mapping[str, Lease] = {}


class BadRuns(msgspec.Struct, frozen=True):
    """How many consecutive runs of a commit did nothing, why the last one did, and when."""

    runs: int
    why: str
    at_ms: int


class Health(NamedTuple):
    """`health.json`: the commits whose last run did nothing.

    `combinations` are those of a matrix, by commit and name (`COMMIT/NAME`).
    """

    commits: Mapping[str, BadRuns] = {}
    combinations: Mapping[str, BadRuns] = {}
    rest: Mapping[str, Any] = {}


class CommitTimes(msgspec.Struct, frozen=True):
    """`times.json`: when the manager saw that a commit was pushed, and when it scheduled it."""

    pushed: Mapping[str, int] = {}
    scheduled: Mapping[str, int] = {}


class MalformedFile(ValueError):
    """A file with the wrong format; the message says where."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How one kind of file is read and written."""

    file: str
    empty: T
    decode: Callable[[bytes, Mapping[str, str]], tuple[T, Version]]
    encode: Callable[[T, Version], tuple[bytes, dict[str, str]]]


def struct_codec(file: str, kind: type[Any], empty: T, *, indented: bool = True) -> Codec[T]:
    """Returns the codec of a file whose object is a struct of this kind, with the version."""

    def decode(body: bytes, _: Mapping[str, str]) -> tuple[T, Version]:
        try:
            fields = msgspec.json.decode(body, type=dict[str, Any])
            version = msgspec.convert(fields.pop("version", {}), Version)
            return msgspec.convert(fields, kind), version
        except msgspec.MsgspecError as error:
            raise MalformedFile(str(error)) from None

    def encode(document: T, version: Version) -> tuple[bytes, dict[str, str]]:
        fields = {**msgspec.to_builtins(document), "version": msgspec.to_builtins(version)}
        body = msgspec.json.encode(fields)
        return (msgspec.json.format(body, indent=2) if indented else body) + b"\n", {}

    return Codec(file, empty, decode, encode)


def parse(body: bytes) -> Any:
    """Parses JSON, or raises `MalformedFile`."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFile(f"it is not JSON: {error}") from None


def _fields(body: bytes) -> dict[str, Any]:
    value = parse(body)
    if not isinstance(value, dict):
        raise MalformedFile("expected an object")
    return value


def _version(fields: dict[str, Any]) -> Version:
    """Removes and returns the version. A file written by someone else has none."""
    try:
        return msgspec.convert(fields.pop("version", {}), Version)
    except msgspec.ValidationError as error:
        raise MalformedFile(f"version: {error}") from None


def _commits(fields: dict[str, Any], name: str) -> tuple[str, ...]:
    value = fields.pop(name, [])
    if not isinstance(value, list) or not all(map(is_commit, value)):
        raise MalformedFile(f"expected {name} to be a list of commits")
    if len(set(value)) != len(value):
        raise MalformedFile(f"{name} lists a commit twice")
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
    return State(last, at, fields, _branches(fields)), version


def _branches(fields: dict[str, Any]) -> dict[str, BranchProgress]:
    """Removes and returns the progress of each branch; a solver with one branch has none."""
    try:
        found = msgspec.convert(fields.pop("branches", {}), dict[str, BranchProgress])
    except msgspec.ValidationError as error:
        raise MalformedFile(f"branches: {error}") from None
    for name, one in found.items():
        commits = [one.last_checked_commit, *one.waiting]
        if not all(is_commit(commit) for commit in commits if commit is not None):
            raise MalformedFile(f"expected the commits of branch {name} to be commits")
    return found


def _write_state(state: State, version: Version) -> tuple[bytes, dict[str, str]]:
    shape = {"last_checked_commit": state.last_checked_commit}
    more: dict[str, Any] = {"checked_at_ms": state.checked_at_ms}
    if state.branches:
        more["branches"] = state.branches
    return _object(shape, more, state.rest, version)


def _read_queue(body: bytes, _: Mapping[str, str]) -> tuple[BuildQueue, Version]:
    fields = _fields(body)
    version = _version(fields)
    queue, built, failed, seen = (
        _commits(fields, name) for name in ("queue", "built", "failed", "seen")
    )
    found = BuildQueue(queue, built, failed, seen, fields)
    places = (*found.queue, *found.built, *found.failed)
    if len(set(places)) != len(places):
        raise MalformedFile("a commit is in more than one of queue, built and failed")
    return found, version


def _write_queue(queue: BuildQueue, version: Version) -> tuple[bytes, dict[str, str]]:
    shape = {"queue": queue.queue, "built": queue.built, "failed": queue.failed}
    return _object(shape, {"seen": queue.seen[-SEEN:]}, queue.rest, version)


def _object(
    shape: Mapping[str, Any], more: Mapping[str, Any], rest: Mapping[str, Any], version: Version
) -> tuple[bytes, dict[str, str]]:
    """Encodes the documented fields first, then ours, then unknown ones."""
    document = {**shape, **more, **rest, "version": version}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n", {}


def _read_schedule(body: bytes, attributes: Mapping[str, str]) -> tuple[Schedule, Version]:
    items = parse(body)
    if not isinstance(items, list):
        raise MalformedFile("expected an array")
    entries = tuple(_entry(item) for item in items)
    if len({entry.hash for entry in entries}) != len(entries):
        raise MalformedFile("it lists a commit twice")
    version = _version_of_attributes(attributes)
    # A copied file may have lost its attributes, but not the whitespace after the array.
    seq = max(version.seq, _seq_after_array(body))
    return entries, Version(seq, version.nonce, version.recent)


def _entry(item: object) -> Entry:
    if not isinstance(item, dict) or not is_commit(item.get("hash")):
        raise MalformedFile('expected entries such as {"hash": "…", "fuzz_count": 0}')
    count = item.get("fuzz_count", 0)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise MalformedFile(f"expected fuzz_count of {item['hash']} to be a number, at least 0")
    branches = item.get("branches", [])
    if not isinstance(branches, list) or not all(isinstance(name, str) for name in branches):
        raise MalformedFile(f"expected branches of {item['hash']} to be a list of names")
    known = ("hash", "fuzz_count", "branches")
    rest = {name: value for name, value in item.items() if name not in known}
    return Entry(item["hash"], count, rest, tuple(branches))


def _write_schedule(schedule: Schedule, version: Version) -> tuple[bytes, dict[str, str]]:
    items = [
        {"hash": e.hash, "fuzz_count": e.fuzz_count}
        | ({"branches": e.branches} if e.branches else {})
        | dict(e.rest)
        for e in schedule
    ]
    body = msgspec.json.format(msgspec.json.encode(items), indent=2)
    return body + _blank(version.seq), attributes_of(version)


def _blank(seq: int) -> bytes:
    """Encodes a number as whitespace, which JSON parsers ignore."""
    return f"{seq:b}".replace("0", " ").replace("1", "\t").encode() + b"\n"


def _seq_after_array(body: bytes) -> int:
    blank = body.rpartition(b"]")[2]
    if not _NUMBER.fullmatch(blank):
        return 0
    return int(blank.strip(b"\n").replace(b" ", b"0").replace(b"\t", b"1"), 2)


def attributes_of(version: Version) -> dict[str, str]:
    """Encodes a version as attributes of an object."""
    return {
        "windlass-seq": str(version.seq),
        "windlass-nonce": version.nonce,
        "windlass-recent": ",".join(version.recent),
    }


def _version_of_attributes(attributes: Mapping[str, str]) -> Version:
    """Decodes a version; servers differ in the case of attribute names."""
    known = {name.lower(): value for name, value in attributes.items()}
    seq = known.get("windlass-seq", "0")
    if not (seq.isascii() and seq.isdigit() and len(seq) <= DIGITS):
        raise MalformedFile("expected the attribute windlass-seq to be a number")
    recent = tuple(one for one in known.get("windlass-recent", "").split(",") if one)
    return Version(int(seq), known.get("windlass-nonce", ""), recent)


def _read_leases(body: bytes, _: Mapping[str, str]) -> tuple[Leases, Version]:
    fields = _fields(body)
    version = _version(fields)
    try:
        build = msgspec.convert(fields.pop("build", {}), dict[str, Lease])
        fuzz = msgspec.convert(fields.pop("fuzz", {}), dict[str, Lease])
        triage = msgspec.convert(fields.pop("triage", {}), dict[str, Lease])
    except msgspec.ValidationError as error:
        raise MalformedFile(str(error)) from None
    return Leases(build, fuzz, fields, triage), version


def _write_leases(leases: Leases, version: Version) -> tuple[bytes, dict[str, str]]:
    more = {"triage": leases.triage} if leases.triage else {}
    return _object({"build": leases.build, "fuzz": leases.fuzz}, more, leases.rest, version)


def _read_health(body: bytes, _: Mapping[str, str]) -> tuple[Health, Version]:
    fields = _fields(body)
    version = _version(fields)
    try:
        commits = msgspec.convert(fields.pop("commits", {}), dict[str, BadRuns])
        parts = msgspec.convert(fields.pop("combinations", {}), dict[str, BadRuns])
    except msgspec.ValidationError as error:
        raise MalformedFile(str(error)) from None
    return Health(commits, parts, fields), version


def _write_health(health: Health, version: Version) -> tuple[bytes, dict[str, str]]:
    newest = _newest(health.commits, SICK)
    parts = _newest(health.combinations, SICK * 4)
    more = {"combinations": parts} if parts else {}
    return _object({"commits": newest}, more, health.rest, version)


def _newest(found: Mapping[str, BadRuns], limit: int) -> dict[str, BadRuns]:
    return dict(sorted(found.items(), key=lambda item: item[1].at_ms)[-limit:])


STATE: Final = Codec("state.json", State(), _read_state, _write_state)
QUEUE: Final = Codec("build-queue.json", BuildQueue(), _read_queue, _write_queue)
SCHEDULE: Final[Codec[Schedule]] = Codec(
    "fuzzing-schedule.json", (), _read_schedule, _write_schedule
)
LEASES: Final = Codec("leases.json", Leases(), _read_leases, _write_leases)
TIMES: Final = struct_codec("times.json", CommitTimes, CommitTimes())
HEALTH: Final = Codec("health.json", Health(), _read_health, _write_health)
