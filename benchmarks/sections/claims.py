"""The cost of a claim beside long queues, foreign jobs, many shapes and a long history.

Each scene is a store filled by set-based SQL. A claim is one sync that finishes what the
last one gave and takes as many new jobs; what it took is submitted anew, outside the time.
The base scene, 1,000 queued jobs of one shape, takes a turn before every claim of another,
so that both meet the same moments of the machine. Wall time and CPU time must both hold.
The disk is left out (SQLite's files lie in memory, PostgreSQL does not wait for it): it
would add the same to both and hide what differs.
"""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from statistics import quantiles

import msgspec
import uvloop

from benchmarks import drive
from benchmarks.fill import (
    FINISHED,
    RUNNING,
    Group,
    plain_shape,
    sized_shape,
    task_shapes,
    zone_shapes,
)
from benchmarks.options import Options
from benchmarks.report import Row
from benchmarks.stores import OpenFilled, filled_postgres, filled_sqlite
from tests.support.postgres import start_postgres
from windlass.engine.engine import Engine
from windlass.messages.workers import QueueLimits

WANTS = (1, 100)
BASE_JOBS = 1_000
SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "4GB", "autovacuum": "off"}
MINE = "mine"  # the zone of the worker
CPUS = 250
IN_USE = 100  # of them, where there are resources


class Scene(msgspec.Struct, frozen=True):
    """What stands in the store, and by how much dearer a claim may be than in the base."""

    name: str
    groups: Sequence[Group]
    most: float | None
    limited: bool = False  # its queue has limits


def base() -> Scene:
    return Scene("1,000 queued", [Group(BASE_JOBS, [plain_shape()])], None)


def scenes(options: Options) -> list[Scene]:
    """The scenes of issue 2."""
    many = options.pick(1_000_000, 50_000)
    shapes = options.pick(10_000, 1_000)
    mine = Group(BASE_JOBS, [plain_shape()])
    found = [
        Scene(f"{many:,} queued", [Group(many, [plain_shape()])], 1.2),
        Scene(f"{many:,} in front, not runnable", [Group(many, zone_shapes(1)), mine], 1.2),
        Scene(f"{shapes:,} shapes, all runnable", [Group(10 * shapes, task_shapes(shapes))], 3),
        Scene(f"{shapes:,} shapes, one runnable",
              [Group(10 * shapes, zone_shapes(shapes)), mine], 3),
        Scene(f"{10 * shapes:,} jobs of a shape each",
              [Group(10 * shapes, task_shapes(10 * shapes))], None),
    ]  # fmt: skip
    found.append(_crowded(many))
    if options.long:
        done = Group(10_000_000, [plain_shape()], FINISHED)
        waiting = Group(BASE_JOBS, task_shapes(1))
        found.append(Scene("10,000,000 finished", [done, waiting], 1.2))
    return found


def _crowded(many: int) -> Scene:
    """Everything that a claim can count: a worker in use, large jobs in front, a limited queue."""
    small, large = [sized_shape(1)], [sized_shape(200)]
    groups = [Group(IN_USE, small, RUNNING), Group(many // 2, large), Group(many // 2, small)]
    return Scene(f"{many:,} queued, limits and resources in use", groups, 2, limited=True)


def run(options: Options) -> list[Row]:
    """All scenes on both stores."""
    found, claims = scenes(options), options.pick(60, 15)
    with nullcontext(options.folder) if options.long else options.no_disk() as folder:
        rows = uvloop.run(measure("claims, sqlite", partial(filled_sqlite, folder), found, claims))
    server = start_postgres(durable=False, settings=SETTINGS)
    try:
        opened = partial(filled_postgres, server)
        return rows + uvloop.run(measure("claims, postgres", opened, found, claims))
    finally:
        server.stop()


class Claims(msgspec.Struct):
    """Times of claims, in seconds: by the clock and of this process."""

    wall: list[float] = msgspec.field(default_factory=list)
    cpu: list[float] = msgspec.field(default_factory=list)


class Stage:
    """One scene being played: an engine, its worker, and the times of its claims."""

    def __init__(self, engine: Engine, worker: drive.BenchWorker, sized: bool = False) -> None:
        self._engine = engine
        self._resources = {"cpus": 1, "memory": "1GiB"} if sized else None
        self._worker = worker
        self.first_ms = 0.0
        self.refreshed_ms = 0.0
        self.claims: dict[int, Claims] = {want: Claims() for want in WANTS}

    @classmethod
    async def set_up(cls, engine: Engine, limited: bool = False) -> "Stage":
        """A claim that reads the heads of all shapes is timed by itself.

        The first one also matches every shape; later ones come with `bound_ttl`.
        """
        offers: dict[str, object] = {"zone": MINE, "system:cpus": CPUS, "system:memory": 2**40}
        worker = await drive.BenchWorker.enrol(engine, "w", **offers)
        if limited:
            limits = QueueLimits(max_running=CPUS + IN_USE, max_per_worker=CPUS)
            await engine.queues.set_limits("default", limits)
        stage = cls(engine, worker, limited)
        stage.first_ms = (await stage._claim(1))[0] * 1000
        await engine.refresh()
        stage.refreshed_ms = (await stage._claim(1))[0] * 1000
        for want in WANTS:
            for _ in range(3):
                await stage._claim(want)
        return stage

    async def claim(self, want: int) -> None:
        wall, cpu = await self._claim(want)
        self.claims[want].wall.append(wall)
        self.claims[want].cpu.append(cpu)

    async def _claim(self, want: int) -> tuple[float, float]:
        await self._worker.sync(0)
        wall, cpu = time.perf_counter(), time.process_time()
        given = await self._worker.sync(want)
        took = time.perf_counter() - wall, time.process_time() - cpu
        if given != want:
            raise RuntimeError(f"expected {want} jobs, got {given}")
        await self._engine.submit(drive.specs(given, resources=self._resources))
        return took


async def measure(
    section: str, opened: OpenFilled, found: Sequence[Scene], claims: int
) -> list[Row]:
    """Play each scene beside the base."""
    rows: list[Row] = []
    async with opened(base().groups) as engine:
        beside = await Stage.set_up(engine)
        for scene in found:
            async with opened(scene.groups) as other:
                stage = await Stage.set_up(other, scene.limited)
                for taken in beside.claims.values():
                    taken.wall.clear()
                    taken.cpu.clear()
                for want in WANTS:
                    for _ in range(claims):
                        await beside.claim(want)
                        await stage.claim(want)
            rows += _rows(section, scene, stage, beside)
    return rows


def _rows(section: str, scene: Scene, stage: Stage, beside: Stage) -> list[Row]:
    special = {"first claim": stage.first_ms, "claim after a refresh": stage.refreshed_ms}
    rows = [
        Row(section=section, name=f"{scene.name}: {name}", value=took, unit="ms")
        for name, took in special.items()
    ]
    for want in WANTS:
        mine, its = stage.claims[want], beside.claims[want]
        wall, cpu = _usual(mine.wall), _usual(mine.cpu)
        ratio = max(wall / _usual(its.wall), cpu / _usual(its.cpu))
        rows.append(
            Row(
                section=section,
                name=f"{scene.name}: claim {want}",
                value=wall * 1000,
                unit="ms",
                cpu_us=cpu * 1e6 / want,
                ratio=ratio,
                beside=f"{_usual(its.wall) * 1000:.3f} ms with {base().name}",
                target="" if scene.most is None else f"≤ {scene.most}",
                met=None if scene.most is None else ratio <= scene.most,
            )
        )
    return rows


def _usual(times: list[float]) -> float:
    """The lower quartile: what disturbs a claim on a busy machine only ever adds to it."""
    return quantiles(times, n=4)[0]
