"""What an engine is: a way to look for inputs that break a build, and to judge one input.

Engines are found by the entry point `windlass.fuzz_engines`, so that a package of somebody
else's may bring one. A class there is made with a `Target` and offers the methods of
`Engine`; everything around it (time, findings, corpus, statistics) is the fuzzer's.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.fuzzing.processes import MIB
from windlass.ports.clock import Chance, Clock

GROUP: Final = "windlass.fuzz_engines"

Kind = Literal["fine", "bug", "unsupported", "timeout", "memory"]
T = TypeVar("T")


class EngineFailed(WindlassError):
    """The engine could not fuzz: the run does not count, and the message says why."""

    code = "engine_failed"


class Verdict(NamedTuple):
    """What a build makes of one input; `title` tells bugs apart and is empty for all else."""

    kind: Kind
    title: str = ""
    output: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A build, how it is to be run, and within what."""

    binaries: Path
    options: Mapping[str, Any]
    scratch: Path
    clock: Clock
    chance: Chance
    input_timeout_ms: int = 10_000
    memory: int = 2_048 * MIB
    variables: Mapping[str, str] = field(default_factory=dict)


class Statistics(msgspec.Struct, kw_only=True):
    """What a campaign did. Counts of an engine that does not tell them stay 0."""

    executions: int = 0
    bugs: int = 0
    unsupported: int = 0
    timeouts: int = 0
    memory: int = 0
    new_inputs: int = 0
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Campaign:
    """One stretch of fuzzing: from what, into what, for how long and on how many cores.

    With `until_bug` it ends as soon as something broke the build.
    """

    seeds: list[Path]
    corpus: Path
    crashes: Path
    budget_ms: int
    cores: int
    until_bug: bool = False
    told: Callable[[Statistics], None] = lambda _: None


class Engine(Protocol):
    """A way to fuzz."""

    async def fuzz(self, campaign: Campaign) -> Statistics:
        """Fuzz until the budget is spent; what broke the build is copied to `crashes`."""
        ...

    async def judge(self, path: Path) -> Verdict:
        """Run one input."""
        ...

    def command(self, path: Path) -> list[str]:
        """What a person types to see it."""
        ...

    async def shrink(self, path: Path, into: Path, budget_ms: int) -> bool:
        """Make an input smaller by a minimiser of the engine's own; False if it has none."""
        ...

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:
        """Keep what reaches something of its own; False if the engine cannot tell."""
        ...


def engine_names() -> list[str]:
    """The engines that are installed."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def make_engine(name: str, target: Target) -> Engine:
    """The engine of this name, for this build."""
    for entry in entry_points(group=GROUP, name=name):
        engine: Engine = entry.load()(target)
        return engine
    raise InvalidInput("engine.name", f"one of {', '.join(engine_names())}", name)


def options_of(target: Target, kind: type[T]) -> T:
    """The options of an engine, checked against what it knows."""
    given = {name: value for name, value in target.options.items() if name != "name"}
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput("engine", f"options that fit ({error})", given) from None


def filled(argv: list[str], target: Target, **values: str) -> list[str]:
    """A command with its `{binaries}`, `{input}` … put in; other braces stay as they are."""
    known = {"binaries": str(target.binaries), **values}
    return [_fill(word, known) for word in argv]


def _fill(word: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        word = word.replace("{" + name + "}", value)
    return word


def program_of(target: Target, name: str) -> Path:
    """A binary of the build; raises when the build did not bring it."""
    path = target.binaries / name
    if not path.is_file():
        there = ", ".join(sorted(p.name for p in target.binaries.iterdir())) or "nothing"
        raise InvalidInput("engine.binary", f"a file of the build ({there})", name)
    return path
