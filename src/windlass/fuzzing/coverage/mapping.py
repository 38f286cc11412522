"""The map: `path:signature:line` of a function, and the tests that reach it.

Lines move with every commit, signatures seldom. So a function is looked for by path and
signature first, then by signature in another file (it was moved), then by the lines of its
file (it was renamed).
"""

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from windlass.domain.values.errors import InvalidInput

VERSION: Final = 1
_TEMPLATE: Final = re.compile(r"<[^<>]*>")


class Function(NamedTuple):
    """One function of the solver."""

    path: str
    signature: str
    line: int

    def key(self) -> str:
        return f"{self.path}:{self.signature}:{self.line}"


class Changed(NamedTuple):
    """A function that a commit touches: its name as the source has it, and its lines."""

    path: str
    name: str
    first: int
    last: int


class _Stored(msgspec.Struct, kw_only=True):
    """As it is written: names of tests once, functions with the numbers of their tests."""

    version: int = VERSION
    commit: str
    tests: list[str]
    functions: dict[str, list[int]]


@dataclass(frozen=True, slots=True)
class CoverageMap:
    """Which tests reach which functions, as of one commit."""

    commit: str
    functions: Mapping[Function, frozenset[str]]

    @property
    def tests(self) -> list[str]:
        """All tests that reach anything."""
        return sorted({test for tests in self.functions.values() for test in tests})

    def merged(self, other: "CoverageMap") -> "CoverageMap":
        """With what another shard has seen of the same commit."""
        if other.commit != self.commit:
            expected = f"a shard of commit {self.commit}"
            raise InvalidInput("coverage shard", expected, other.commit)
        both = dict(self.functions)
        for function, tests in other.functions.items():
            both[function] = both.get(function, frozenset()) | tests
        return CoverageMap(self.commit, both)

    def reaching(self, changed: Sequence[Changed]) -> list[str]:
        """The tests that reach any of these functions, the rarest first.

        Rare is a test for which few others stand in: one that reaches a changed function
        which hardly any test reaches.
        """
        rank: dict[str, int] = {}
        for one in changed:
            for function in self._find(one):
                tests = self.functions[function]
                for test in tests:
                    rank[test] = min(rank.get(test, len(tests)), len(tests))
        return sorted(rank, key=lambda test: (rank[test], test))

    def _find(self, changed: Changed) -> list[Function]:
        here = [f for f in self.functions if f.path == changed.path]
        named = [f for f in here if same_name(f.signature, changed.name)]
        if named:
            return named
        moved = [f for f in self.functions if same_name(f.signature, changed.name)]
        if moved and changed.name:
            return moved
        return _by_lines(here, changed)


def _by_lines(here: Iterable[Function], changed: Changed) -> list[Function]:
    """Those that began within the lines, and the last that began before them."""
    ordered = sorted(here, key=lambda function: function.line)
    inside = [f for f in ordered if changed.first <= f.line <= changed.last]
    before = [f for f in ordered if f.line < changed.first]
    return [*before[-1:], *inside]


def same_name(signature: str, name: str) -> bool:
    """Whether a signature of the map is that of a function named so in the source.

    The source may leave out namespaces, which stand around it, and the map leaves out
    nothing: `ns::Parser::parse(std::string const&)` is `Parser::parse`.
    """
    full = plain_name(signature)
    wanted = plain_name(name)
    return bool(wanted) and (full == wanted or full.endswith(f"::{wanted}"))


def plain_name(signature: str) -> str:
    """A function's qualified name without parameters, template arguments and return type."""
    text = signature.replace("(anonymous namespace)::", "")
    while (shorter := _TEMPLATE.sub("", text)) != text:
        text = shorter
    head = text.partition("(")[0].strip()
    if "operator" in head:
        return head[: head.index("operator")].split(" ")[-1] + head[head.index("operator") :]
    return head.split(" ")[-1].lstrip("*&")


def encode(found: CoverageMap) -> bytes:
    """Compressed JSON, the same bytes for the same map."""
    tests = found.tests
    number = {test: n for n, test in enumerate(tests)}
    functions = {
        function.key(): sorted(number[test] for test in found.functions[function])
        for function in sorted(found.functions)
    }
    stored = _Stored(commit=found.commit, tests=tests, functions=functions)
    return gzip.compress(msgspec.json.encode(stored), mtime=0)


def decode(data: bytes) -> CoverageMap:
    """What `encode` made; raises when it is something else."""
    try:
        stored = msgspec.json.decode(gzip.decompress(data), type=_Stored)
    except (OSError, EOFError, msgspec.MsgspecError) as error:
        raise InvalidInput("coverage map", "one written by the mapper", str(error)) from None
    if stored.version != VERSION:
        raise InvalidInput("coverage map", f"one of version {VERSION}", stored.version)
    functions = {
        _parse(key): frozenset(stored.tests[n] for n in numbers)
        for key, numbers in stored.functions.items()
    }
    return CoverageMap(stored.commit, functions)


def _parse(key: str) -> Function:
    rest, _, line = key.rpartition(":")
    path, _, signature = rest.partition(":")
    return Function(path, signature, int(line))
