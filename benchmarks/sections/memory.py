"""Memory of the engine: what it keeps for each queued job, which should be nothing.

tracemalloc counts every byte Python holds. An engine on a long queue is compared with one
on a short queue after the same claims and submits; another takes in many jobs by itself.
"""

import gc
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import uvloop

from benchmarks import drive
from benchmarks.fill import Group, plain_shape, task_shapes
from benchmarks.options import Options
from benchmarks.report import Row
from benchmarks.stores import filled_sqlite

SHORT = 1_000
MAX_BYTES = 100
CLAIMS = 20


def run(options: Options) -> list[Row]:
    """On SQLite; the engine is the same on every store."""
    many = options.pick(1_000_000, 100_000)
    shapes = options.pick(20_000, 2_000)
    submitted = options.pick(100_000, 20_000)
    with options.no_disk() as folder:
        short = uvloop.run(_kept(folder, [Group(SHORT, [plain_shape()])], 0))
        queued = uvloop.run(_kept(folder, [Group(many, [plain_shape()])], 0))
        taken_in = uvloop.run(_kept(folder, [Group(SHORT, [plain_shape()])], submitted))
        shaped = uvloop.run(_kept(folder, [Group(shapes, task_shapes(shapes))], 0))
    return [
        _row(f"for each of {many:,} queued jobs", (queued - short) / (many - SHORT), MAX_BYTES),
        _row(f"for each of {submitted:,} jobs it took in", (taken_in - short) / submitted,
             MAX_BYTES),
        _row(f"for each of {shapes:,} shapes", (shaped - short) / shapes, None),
        _row("of an engine on a short queue", short, None),
    ]  # fmt: skip


def _row(name: str, size: float, most: int | None) -> Row:
    return Row(
        section="memory",
        name=name,
        value=max(size, 0.0),
        unit="bytes",
        target="" if most is None else f"< {most} bytes",
        met=None if most is None else size < most,
    )


async def _kept(folder: Path, groups: Sequence[Group], submitted: int) -> int:
    """Bytes an engine holds after claims and submits on what `groups` filled."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    async with filled_sqlite(folder, groups) as engine:
        worker = await drive.BenchWorker.enrol(engine)
        for _ in range(CLAIMS):
            await engine.submit(drive.specs(10))
            await worker.sync(10)
        for first in range(0, submitted, 1_000):
            await engine.submit(drive.specs(1_000, first))
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size - before
