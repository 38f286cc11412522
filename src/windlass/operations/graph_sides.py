"""The jobs of two runs as they are compared, and which of their arguments differ."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from windlass.domain.graphs.compare import Difference, Side
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import TERMINAL_CODES
from windlass.domain.tasks.references import RESULT, replaced
from windlass.engine.graphs import Loaded
from windlass.messages.graphs.figures import ComparedArgument

MAX_ARGUMENTS: Final = 20
MAX_CHARACTERS: Final = 500  # characters of a value


def sides_of(loaded: Loaded, digests: Sequence[int]) -> Iterable[Side]:
    """Yields the jobs of a run with how long each ran, and waited once it could have run."""
    graph, started, finished = loaded.graph, loaded.started, loaded.finished
    for number, job in enumerate(graph.jobs):
        start, state = started[number], loaded.states[number]
        run = finished[number] - start if start and state in TERMINAL_CODES else None
        needed = graph.needs_of(number)
        ready = max((finished[other] for other in needed), default=0)
        wait = start - max(ready, loaded.created[number]) if start else None
        yield Side(
            job, graph.names[number], state,
            None if run is None else max(0, run), None if wait is None else max(0, wait),
            digests[number],
        )  # fmt: skip


def show_arguments(
    found: Difference, specs: Mapping[int, bytes], runs: tuple[Loaded, Loaded]
) -> Sequence[ComparedArgument]:
    """Returns the arguments that differ, with the names of jobs instead of their ids."""
    if not found.arguments or found.a is None or found.b is None:
        return ()
    sides = ((found.a.job, runs[0]), (found.b.job, runs[1]))
    if any(job not in specs for job, _ in sides):
        return ()
    a, b = (_arguments(specs[job], loaded) for job, loaded in sides)
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    return [
        ComparedArgument(name=name, a=_cut(a.get(name)), b=_cut(b.get(name)))
        for name in names[:MAX_ARGUMENTS]
    ]


def _arguments(spec: bytes, loaded: Loaded) -> dict[str, Any]:
    """Returns the arguments by name; those of functions are inside others."""

    def named(job: Any) -> Any:
        number = loaded.graph.index.get(job) if isinstance(job, int) else None
        return {RESULT: job if number is None else loaded.graph.names[number]}

    given = replaced(decode_spec(spec).args, RESULT, named)
    if not isinstance(given, dict):
        return {"args": given}
    flat: dict[str, Any] = {}
    for name, value in given.items():
        inner = value if name in ("args", "kwargs") else None
        if isinstance(inner, dict):
            flat |= {f"{name}.{key}": one for key, one in inner.items()}
        elif isinstance(inner, list):
            flat |= {f"{name}[{at}]": one for at, one in enumerate(inner)}
        else:
            flat[name] = value
    return flat


def _cut(value: Any) -> Any:
    text = msgspec.json.encode(value).decode()
    return value if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
