"""The coverage map: `path:signature:line` of a function, and the tests that reach it.

Lines move with every commit, signatures rarely do. A function is therefore looked up by path
and signature, then by signature in another file (it was moved), then by line (it was renamed).
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from windlass_fuzz.errors import InvalidSetting

VERSION: Final = 1
MAX_BYTES: Final = 512 * 1024 * 1024  # bytes of a map; a compressed file may claim far more
_TEMPLATE: Final = re.compile(r"<[^<>]*>")


class Function(NamedTuple):
    """One function of the solver."""

    path: str
    signature: str
    line: int

    def key(self) -> str:
        """Returns the key in the stored map."""
        return f"{self.path}:{self.signature}:{self.line}"


class ChangedFunction(NamedTuple):
    """A function that a commit changes: its name in the source, and its lines."""

    path: str
    name: str
    first: int
    last: int


class _Stored(msgspec.Struct, kw_only=True):
    """The stored form: each test name once, and per function the numbers of its tests.

    `targets` has the same for each target of a matrix.
    """

    version: int = VERSION
    commit: str
    tests: list[str]
    functions: dict[str, list[int]]
    targets: dict[str, dict[str, list[int]]] = {}


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """Which tests reach which functions, as of one commit; with a matrix also for each target."""

    commit: str
    functions: Mapping[Function, frozenset[str]]
    targets: Mapping[str, Mapping[Function, frozenset[str]]] = field(default_factory=dict)

    @property
    def tests(self) -> list[str]:
        """Returns all tests that reach any function."""
        return sorted({test for tests in self.functions.values() for test in tests})

    def merged(self, other: "CoverageMap") -> "CoverageMap":
        """Returns this map combined with another shard of the same commit."""
        if other.commit != self.commit:
            message = f"cannot merge coverage shards of {self.commit} and {other.commit}"
            raise InvalidSetting("coverage shard", message, other.commit)
        names = dict.fromkeys([*self.targets, *other.targets])
        targets = {
            name: _united(self.targets.get(name, {}), other.targets.get(name, {})) for name in names
        }
        return CoverageMap(self.commit, _united(self.functions, other.functions), targets)

    def with_target(self, name: str) -> "CoverageMap":
        """Returns this map as the map of one target of a matrix; "" is none."""
        return CoverageMap(self.commit, self.functions, {name: self.functions} if name else {})

    def of_target(self, name: str) -> "CoverageMap":
        """Returns what one target reaches; everything if its part is not known.

        Functions that only other targets reach stay, without tests: otherwise a function of the
        same name in another file would be mistaken for them.
        """
        own = self.targets.get(name)
        if own is None:
            return self
        return CoverageMap(self.commit, {f: own.get(f, frozenset()) for f in self.functions})

    def tests_reaching(self, changed: Sequence[ChangedFunction]) -> list[str]:
        """Returns the tests that reach any of these functions, the rarest first.

        A test is rare if it reaches a changed function that few other tests reach.
        """
        rank: dict[str, int] = {}
        for one in changed:
            for function in self._find(one):
                tests = self.functions[function]
                for test in tests:
                    rank[test] = min(rank.get(test, len(tests)), len(tests))
        return sorted(rank, key=lambda test: (rank[test], test))

    def _find(self, changed: ChangedFunction) -> list[Function]:
        here = [f for f in self.functions if f.path == changed.path]
        named = [f for f in here if same_name(f.signature, changed.name)]
        if named:
            return named
        moved = [f for f in self.functions if same_name(f.signature, changed.name)]
        if moved and changed.name:
            return moved
        return _by_lines(here, changed)


def _united(
    one: Mapping[Function, frozenset[str]], other: Mapping[Function, frozenset[str]]
) -> dict[Function, frozenset[str]]:
    both = dict(one)
    for function, tests in other.items():
        both[function] = both.get(function, frozenset()) | tests
    return both


def _by_lines(here: Iterable[Function], changed: ChangedFunction) -> list[Function]:
    """Returns the functions that start within the lines, and the last one before them."""
    ordered = sorted(here, key=lambda function: function.line)
    inside = [f for f in ordered if changed.first <= f.line <= changed.last]
    before = [f for f in ordered if f.line < changed.first]
    return [*before[-1:], *inside]


def same_name(signature: str, name: str) -> bool:
    """Returns whether a signature of the map belongs to the function that the source names.

    The source may omit enclosing namespaces, the map never does: `ns::Parser::parse(std::string
    const&)` matches `Parser::parse`.
    """
    full = plain_name(signature)
    wanted = plain_name(name)
    return bool(wanted) and (full == wanted or full.endswith(f"::{wanted}"))


def plain_name(signature: str) -> str:
    """Returns the qualified name without parameters, template arguments and return type."""
    text = signature.replace("(anonymous namespace)::", "")
    while (shorter := _TEMPLATE.sub("", text)) != text:
        text = shorter
    head = text.partition("(")[0].strip()
    if "operator" in head:
        return head[: head.index("operator")].split(" ")[-1] + head[head.index("operator") :]
    return head.split(" ")[-1].lstrip("*&")


def encode(found: CoverageMap) -> bytes:
    """Encodes a map as compressed JSON; equal maps give equal bytes."""
    tests = found.tests
    number = {test: n for n, test in enumerate(tests)}
    stored = _Stored(
        commit=found.commit, tests=tests, functions=_numbered(found.functions, number),
        targets={name: _numbered(part, number) for name, part in sorted(found.targets.items())},
    )  # fmt: skip
    return gzip.compress(msgspec.json.encode(stored), mtime=0)


def decode(data: bytes) -> CoverageMap:
    """Decodes a map; raises `InvalidSetting` if the data is something else."""
    try:
        stored = msgspec.json.decode(_decompress(data), type=_Stored)
        if stored.version != VERSION:
            message = f"cannot read a coverage map of version {stored.version}, only of {VERSION}"
            raise InvalidSetting("coverage map", message, stored.version)
        functions = _named(stored.functions, stored.tests)
        targets = {name: _named(part, stored.tests) for name, part in stored.targets.items()}
    except (zlib.error, EOFError, msgspec.MsgspecError, ValueError, IndexError) as error:
        raise InvalidSetting("coverage map", f"cannot read the coverage map: {error}") from None
    return CoverageMap(stored.commit, functions, targets)


def _numbered(
    functions: Mapping[Function, frozenset[str]], number: Mapping[str, int]
) -> dict[str, list[int]]:
    return {one.key(): sorted(number[t] for t in functions[one]) for one in sorted(functions)}


def _named(
    functions: Mapping[str, list[int]], tests: Sequence[str]
) -> dict[Function, frozenset[str]]:
    return {_parse(key): frozenset(tests[n] for n in ns) for key, ns in functions.items()}


def _decompress(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # with the header of gzip
    content = unpacker.decompress(data, MAX_BYTES)
    if not unpacker.eof:
        raise EOFError(f"it is truncated, or larger than {MAX_BYTES} bytes")
    return content


def _parse(key: str) -> Function:
    rest, _, line = key.rpartition(":")
    path, _, signature = rest.partition(":")
    return Function(path, signature, int(line))
