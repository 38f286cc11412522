"""The engine protocol: how to search for inputs that break a build, and to classify one input.

Plug-ins add engines under `fuzz.engines`, so other packages can provide some. An engine class takes
a `Target` and implements `Engine`. The fuzzer does everything else: time, findings, corpus,
statistics.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass.domain.values.names import did_you_mean
from windlass.plugins import extensions
from windlass.ports.clock import Chance, Clock
from windlass_fuzz.config.combinations import combinations_of
from windlass_fuzz.config.finding_settings import (
    ALWAYS,
    FailureKind,
    SignatureSettings,
)
from windlass_fuzz.config.settings import convert_settings
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.signature import Signature, Source
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.runner import MIB

PLACE: Final = "fuzz.engines"  # where plug-ins add engines

Kind = Literal["fine", "bug", "unsupported", "timeout", "memory"]
T = TypeVar("T")


class EngineFailed(WindlassError):
    """The engine could not fuzz. The run does not count, and the message says why."""

    code = "engine_failed"


class BuildLost(EngineFailed):
    """A build was deleted from the bucket while a run needed it. No run did anything wrong."""


class Verdict(NamedTuple):
    """How a build handles one input. `title` identifies a bug and is empty otherwise.

    `failure` is the kind of bug, `frames` the functions that the title names, and `source` where it
    comes from: a title from the program's output may be improved by a stack. A `family` says that
    the title is about the input; see `Signature`. The `frames` of a timeout are the whole stack at
    that moment, if the engine knows it.
    """

    kind: Kind
    title: str = ""
    output: str = ""
    failure: FailureKind = "crash"
    frames: tuple[str, ...] = ()
    source: Source = "message"
    family: str = ""

    @property
    def signature(self) -> Signature:
        return Signature(self.failure, self.title, self.frames, self.source, self.family)


def bug_verdict(found: Signature, output: str) -> Verdict:
    """Returns the verdict about an input that shows a bug with this signature."""
    return Verdict("bug", found.title, output, found.kind, found.frames, found.source)


@dataclass(frozen=True, slots=True)
class Target:
    """A build, the engine's options, and the limits for each run; `sources` is the checkout."""

    binaries: Path
    options: Mapping[str, Any]
    scratch: Path
    clock: Clock
    chance: Chance
    input_timeout_ms: int = 10_000
    memory: int = 2_048 * MIB
    variables: Mapping[str, str] = field(default_factory=dict)
    signature: SignatureSettings = field(default_factory=SignatureSettings)
    sources: Path | None = None


class Statistics(msgspec.Struct, kw_only=True):
    """What a campaign did. Counts that an engine does not report stay 0.

    `tests` executions ran unmodified tests, and `tests_fine` of those ran to an answer. `coverage`
    is the engine's own count, -1 if it does not report one.
    """

    executions: int = 0
    tests: int = 0
    tests_fine: int = 0
    coverage: int = -1
    bugs: int = 0
    unsupported: int = 0
    timeouts: int = 0
    memory: int = 0
    new_inputs: int = 0
    seconds: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign: its seeds, its output folders, its duration and its number of cores.

    With `until_bug` it ends as soon as an input breaks the build. `kinds` are the failures whose
    inputs are kept, `dictionary` is a file with words in AFL's format.
    """

    seeds: list[Path]
    corpus: Path
    crashes: Path
    budget_ms: int
    cores: int
    until_bug: bool = False
    on_progress: Callable[[Statistics], None] = lambda _: None
    kinds: tuple[FailureKind, ...] = ALWAYS
    dictionary: Path | None = None


class Engine(Protocol):
    """A fuzzing engine."""

    async def fuzz(self, campaign: Campaign) -> Statistics:
        """Fuzzes for the budget and copies inputs that break the build to `crashes`."""
        ...

    async def classify(self, path: Path) -> Verdict:
        """Runs one input and returns how the build handled it."""
        ...

    def command(self, path: Path) -> list[str]:
        """Returns the command that a person runs to see the result of an input."""
        ...

    async def stack(self, path: Path) -> tuple[str, ...]:
        """Returns the functions where an input breaks the build or hangs, innermost first, if
        known.
        """
        ...

    async def shrink(self, path: Path, into: Path, budget_ms: int) -> bool:
        """Makes an input smaller with the engine's own minimiser; returns False if it has none."""
        ...

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:
        """Copies the inputs that the coverage needs; returns False if the engine cannot tell."""
        ...


def engine_names() -> list[str]:
    """Returns the names of the installed engines."""
    return sorted(extensions(PLACE))


def make_engine(name: str, target: Target) -> Engine:
    """Creates the engine with this name for a build."""
    found = extensions(PLACE).get(name)
    if found is None:
        raise _unknown_engine(name)
    engine: Engine = found.load()(target)
    return engine


def _unknown_engine(name: str) -> InvalidSetting:
    known = engine_names()
    message = f"unknown engine {name} (installed: {', '.join(known)}){did_you_mean(name, known)}"
    return InvalidSetting("engine.name", message, name)


def check_engine(options: Mapping[str, Any]) -> None:
    """Raises if there is no such engine or it has no such options, without a build.

    An engine of another package names its options in `options_type`, or is not checked.
    """
    name = str(options["name"])
    found = extensions(PLACE).get(name)
    if found is None:
        raise _unknown_engine(name)
    kind = getattr(found.load(), "options_type", None)
    if kind is not None:
        given = {key: value for key, value in options.items() if key != "name"}
        convert_settings(given, kind, f"engine {name}")


def check_engines(solver: Solver) -> None:
    """Raises if the engine of a combination, or one of its options, does not exist."""
    for one in combinations_of(solver):
        try:
            check_engine(one.solver.engine)
        except InvalidSetting as error:
            if not one.name:
                raise
            said = f"{one.name}: {error.message}"
            raise InvalidSetting(error.field, said, error.got) from None


def parse_options(target: Target, kind: type[T]) -> T:
    """Converts the engine's options from the solver file to their type."""
    given = {name: value for name, value in target.options.items() if name != "name"}
    return convert_settings(given, kind, "engine")


def fill_placeholders(argv: list[str], target: Target, **values: str) -> list[str]:
    """Replaces `{binaries}`, `{input}` and so on in a command; leaves other braces alone."""
    known = {"binaries": str(target.binaries), **values}
    return [_fill(word, known) for word in argv]


def _fill(word: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        word = word.replace("{" + name + "}", value)
    return word


def find_binary(target: Target, name: str) -> Path:
    """Returns the path of a binary of the build; raises if the build does not contain it."""
    path = target.binaries / name
    if not path.is_file():
        files = sorted(p.name for p in target.binaries.iterdir())
        listed = ", ".join(files) or "none"
        message = f"the build has no file {name} (files: {listed}){did_you_mean(name, files)}"
        raise InvalidSetting("engine.binary", message, name)
    return path
