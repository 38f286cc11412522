"""What some inputs together reach of a solver's sources: functions and lines, with counts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from windlass_fuzz.coverage.coverage_map import Function


class Share(NamedTuple):
    """How many of all functions and lines are reached."""

    functions: int
    all_functions: int
    lines: int
    all_lines: int


class News(NamedTuple):
    """What was reached for the first time: functions in order, and the number of lines."""

    functions: list[Function]
    lines: int


@dataclass(slots=True)
class SourceReach:
    """One source file: how often each of its lines and functions ran."""

    lines: dict[int, int] = field(default_factory=dict)
    functions: dict[Function, int] = field(default_factory=dict)

    def add_line(self, number: int, count: int) -> None:
        self.lines[number] = self.lines.get(number, 0) + count

    def add_function(self, function: Function, count: int) -> None:
        self.functions[function] = self.functions.get(function, 0) + count

    def reached_lines(self) -> set[int]:
        return {number for number, count in self.lines.items() if count}


@dataclass(slots=True)
class Reach:
    """All source files below the solver's root, by path."""

    files: dict[str, SourceReach] = field(default_factory=dict)

    def source(self, path: str) -> SourceReach:
        """Returns the file with this path; adds it if it is new."""
        return self.files.setdefault(path, SourceReach())

    def functions(self) -> Iterator[Function]:
        """Yields the functions that ran."""
        for source in self.files.values():
            yield from (function for function, count in source.functions.items() if count)

    def add(self, other: "Reach") -> None:
        """Adds what inputs of another program of the same sources reach."""
        for path, source in other.files.items():
            mine = self.source(path)
            for number, count in source.lines.items():
                mine.add_line(number, count)
            for function, count in source.functions.items():
                mine.add_function(function, count)

    def share(self) -> Share:
        """Counts all functions and lines."""
        sources = self.files.values()
        return Share(
            sum(1 for _ in self.functions()),
            sum(len(source.functions) for source in sources),
            sum(len(source.reached_lines()) for source in sources),
            sum(len(source.lines) for source in sources),
        )

    def beyond(self, before: "Reach") -> News:
        """Returns what this reaches and `before`, of the same build, does not."""
        functions = sorted(set(self.functions()) - set(before.functions()))
        nothing = SourceReach()
        lines = sum(
            len(source.reached_lines() - before.files.get(path, nothing).reached_lines())
            for path, source in self.files.items()
        )
        return News(functions, lines)
