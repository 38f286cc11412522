"""The graph of a workflow of 100,000 jobs and a million dependencies, as a server answers it.

Beside each time stands the longest time for which the loop did not come to its other work.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Final

import msgspec
import uvloop

from benchmarks.measure import Watch
from benchmarks.options import Options
from benchmarks.report import Row
from benchmarks.sections.workflows import layers, specs_of
from benchmarks.stores import open_sqlite
from windlass.clock import RealClock
from windlass.domain.access.rights import Identity, Role
from windlass.engine.graphs import Graphs
from windlass.engine.submit.submission import WorkflowSpec
from windlass.operations import graphs
from windlass.operations.dispatch.call import Call

NAME: Final = "graphs"
MAX_SECONDS: Final = 2.0
MAX_PAUSE_MS: Final = 50.0
TICK: Final = 0.001
ADMIN: Final = Identity(0, "bench", Role.ADMIN)


class Pauses:
    """Notes the longest time between two turns of the loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self.longest_ms = 0.0
        self._tick()

    def _tick(self) -> None:
        now = self._loop.time()
        self.longest_ms = max(self.longest_ms, (now - self._last - TICK) * 1000)
        self._last = now
        self._handle = self._loop.call_later(TICK, self._tick)

    def stop(self) -> float:
        """The longest pause, in milliseconds."""
        self._handle.cancel()
        return self.longest_ms


def run(options: Options) -> list[Row]:
    """Open a graph, ask again, open a group, ask for its states, progress and timeline."""
    return uvloop.run(_measure(options))


async def _measure(options: Options) -> list[Row]:
    jobs = options.pick(100_000, 10_000)
    for old in options.folder.glob("graphs.db*"):
        old.unlink()
    async with open_sqlite(options.folder / "graphs.db", RealClock()) as engine:
        made = await engine.submit(specs_of(layers(jobs)), WorkflowSpec(name="bench"))
        workflow = made.known_workflow
        services: Any = SimpleNamespace(engine=engine, graphs=Graphs(engine.store, engine.catalog))
        call = Call(services, ADMIN)

        async def graph(*opened: str) -> str:
            found = await graphs.graph(call, workflow, list(opened))
            if sum(node.jobs for node in found.nodes if not node.open) != jobs:
                raise RuntimeError("some jobs are not shown")
            msgspec.json.encode(found)
            return next(node.id for node in found.nodes if node.kind != "job")

        rows, group = await _timed(f"open the graph of {jobs:,} jobs", graph)
        more = [
            await _timed("open it again", graph),
            await _timed("open a group in it", lambda: graph(group)),
            await _timed("its states", lambda: graphs.graph_states(call, workflow)),
            await _timed("its progress", lambda: graphs.progress(call, workflow)),
            await _timed("its timeline", lambda: graphs.timeline(call, workflow, "name")),
        ]
    return [*rows, *(row for found, _ in more for row in found)]


async def _timed(name: str, call: Callable[[], Awaitable[object]]) -> tuple[list[Row], str]:
    watch, pauses = Watch(), Pauses()
    answer = await call()
    lap, pause = watch.lap(1), pauses.stop()
    rows = [
        Row(section=NAME, name=name, value=lap.seconds, unit="s", cpu_us=None,
            target=f"< {MAX_SECONDS:.0f} s", met=lap.seconds < MAX_SECONDS),
        Row(section=NAME, name=f"{name}: longest pause of the loop", value=pause, unit="ms",
            target=f"< {MAX_PAUSE_MS:.0f} ms", met=pause < MAX_PAUSE_MS),
    ]  # fmt: skip
    return rows, str(answer)
