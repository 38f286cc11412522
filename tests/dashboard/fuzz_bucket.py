"""A bucket of commit fuzzing with something in every part, for the farm of the tests."""

import asyncio
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - beside the browser's loop
from pathlib import Path
from typing import Final

from windlass.fuzzing.buckets.layout import coverage_key
from windlass.fuzzing.coverage import coverage_map
from windlass.fuzzing.coverage.coverage_map import CoverageMap, Function
from windlass.fuzzing.findings.record import Finding, OnBranch
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.state.documents import BranchProgress, BuildQueue, Entry, State
from windlass.fuzzing.state.open import open_pipeline

KEY: Final = "5eed0123456789ab"
INPUT: Final = b"(check-sat)\n<script>document.title='owned'</script>\n"
SOLVER: Final = """\
name: toy
repository: /srv/toy.git
branches: [main, 'release/*']
bucket: {bucket}
binaries: [toy]
build: {{production: [make], coverage: [make]}}
engine: {{name: command, argv: [toy]}}
"""


def make(folder: Path) -> str:
    """Fills a bucket and returns the file of its solver."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _fill(folder / "bucket")).result()
    file = folder / "toy.yaml"
    file.write_text(SOLVER.format(bucket=folder / "bucket"))
    return str(file)


async def _fill(bucket: Path) -> None:
    pipeline = await open_pipeline(str(bucket), "toy")
    queue = BuildQueue(queue=("a" * 40,), built=("b" * 40,), failed=("c" * 40,))
    await pipeline.queue.update(lambda _: queue)
    both = ("main", "release/1")
    entries = [Entry("d" * 40, 7, branches=both), Entry("e" * 40, branches=both[:1])]
    await pipeline.schedule.update(lambda _: tuple(entries))
    progress = {name: BranchProgress("d" * 40, 1_790_000_000_000) for name in both}
    await pipeline.state.update(lambda _: State("d" * 40, 1_790_000_000_000, {}, progress))
    store = FindingStore(pipeline)
    name = await store.put_input(KEY, INPUT, ".smt2")
    finding = Finding(
        key=KEY, title="assertion in <img src=x>", engine="command", command=["toy", "input"],
        input=name, size=len(INPUT), shown=5, tried=5, found_in="d" * 40,
        found_at_ms=1_790_000_000_000, output="Assertion failed", introduced_by="d" * 40,
        branches=[
            OnBranch(name="main", state="fixed", fixed_in="e" * 40),
            OnBranch(name="release/1", since="d" * 40, exact=True),
        ],
    )  # fmt: skip
    await store.update(KEY, lambda _: finding)
    functions = {Function("src/parse.c", f"f{n}()", n): frozenset({"t1"}) for n in range(3)}
    body = coverage_map.encode(CoverageMap("d" * 40, functions))
    await pipeline.bucket.put(coverage_key("toy"), body)
    await pipeline.bucket.close()
