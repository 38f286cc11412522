"""Functions with typed parameters and results, which embedded clients of the tests run."""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import windlass


@dataclass(frozen=True)
class Visit:
    who: str
    at: datetime
    tags: frozenset[str] = frozenset()


@dataclass
class Pages:
    texts: list[str]
    first: int = 0


@dataclass
class Basket:
    total: int
    parts: list[int] = field(default_factory=list)


@windlass.task
def later(visit: Visit, by: timedelta) -> Visit:
    if not isinstance(visit, Visit) or not isinstance(by, timedelta):
        raise TypeError(f"{visit!r} {by!r}")
    return Visit(visit.who, visit.at + by, visit.tags | {"later"})


@windlass.task
async def days(first: date, *, count: int = 1) -> tuple[date, ...]:
    return tuple(first + timedelta(days=n) for n in range(count))


@windlass.task
def add(left: int, right: int) -> int:
    return left + right


@windlass.task
def total(numbers: list[int], start: int = 0) -> int:
    return sum(numbers, start)


@windlass.task
def basket(basket: Basket) -> Basket:
    return Basket(basket.total + sum(basket.parts), basket.parts)


@windlass.task
def names(values: set[str]) -> list[str]:
    return sorted(values)


@windlass.task
def wrong() -> int:
    return "text"  # type: ignore[return-value]


@windlass.task
def repeated(text: str, times: int) -> list[str]:
    return [text] * times


@windlass.task
def count(texts: list[str]) -> int:
    return len(texts)


@windlass.task
def letters(pages: Pages, *more: str, start: int = 0) -> int:
    return sum(map(len, (*pages.texts, *more)), start + pages.first)


@windlass.task
def echo(value: dict[str, Any]) -> Any:
    return value


@windlass.task
def fail_with_text(text: str) -> None:
    raise ValueError(f"{len(text)} letters")


MORNING = Visit("a", datetime(2026, 1, 31, 8, tzinfo=UTC), frozenset({"x"}))


@windlass.task
def size_of(path: Path) -> int:
    return len(path.read_bytes())


@windlass.task
def report(lines: int) -> Path:
    """Leaves a file."""
    path = windlass.current().scratch / "out" / "report.txt"
    path.parent.mkdir()
    path.write_text("line\n" * lines)
    return path


@windlass.task
async def report_async(lines: int) -> dict[str, Path]:
    path = await windlass.current().scratch_async() / "report.txt"
    path.write_text("line\n" * lines)
    return {"report": path}


@windlass.task
def outside() -> Path:
    return Path(__file__)


@windlass.task
def is_gone(path: str) -> bool:
    return not Path(path).exists()


@windlass.task
def where(paths: dict[str, Path | None]) -> list[str | None]:
    return [None if path is None else path.name for path in paths.values()]


@windlass.task
def fail_with(path: Path) -> None:
    raise ValueError(path.read_text())


@windlass.task
def fan(count: int) -> int:
    """Adds children: the last gets the results of the others."""
    parts = [add.submit(number, 1) for number in range(count)]
    return total.submit([part.output for part in parts]).id


@windlass.task
def sends(path: str) -> None:
    size_of.submit(Path(path))
