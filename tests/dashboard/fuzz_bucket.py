"""A bucket of commit fuzzing with something in every part, for the farm of the tests."""

import asyncio
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - beside the browser's loop
from pathlib import Path
from typing import Final

from windlass_fuzz.alarms.outbox import Outbox, failed_again, outbox_file
from windlass_fuzz.alarms.sender import alarm_of
from windlass_fuzz.buckets.layout import build_key, coverage_key
from windlass_fuzz.coverage import coverage_map
from windlass_fuzz.coverage.coverage_map import CoverageMap, Function
from windlass_fuzz.coverage.reach import News
from windlass_fuzz.findings.record import Finding, OnBranch
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.reach.html_store import HtmlStore, ReportInfo, TargetReport
from windlass_fuzz.reach.records import ReachRecords
from windlass_fuzz.state.built_combinations import BuiltCombinations, write_built
from windlass_fuzz.state.documents import (
    BadRuns,
    BranchProgress,
    BuildQueue,
    Entry,
    Health,
    State,
)
from windlass_fuzz.state.open import open_pipeline
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.statistics.history import RunPoint, record_run

KEY: Final = "5eed0123456789ab"
INPUT: Final = b"(check-sat)\n<script>document.title='owned'</script>\n"
DAY_MS: Final = 86_400_000
# What a hostile source would want to do with whoever reads its coverage.
REPORT: Final = """\
<html><head><link rel="stylesheet" href="page1.css"></head><body><h1>Coverage of toy</h1>
<a href="page0.html">src/parse.c</a> <a href="/api/v1/fuzz" target="_top">out</a>
<script>document.title = 'owned'</script>
<img src="x" onerror="document.title = 'owned'">
<form action="/api/v1/jobs"><button>b</button></form>
</body></html>
"""
SOLVER: Final = """\
name: toy
repository: /srv/toy.git
branches: [main, 'release/*']
matrix: {{sanitizers: [address, plain]}}
bucket: {bucket}
binaries: [toy]
build: {{production: [make], coverage: [make]}}
engine: {{name: command, argv: [toy]}}
"""


def make(folder: Path, *, alarm: bool = True) -> str:
    """Fills a bucket and returns the file of its solver."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _fill(folder, alarm)).result()
    file = folder / "toy.yaml"
    file.write_text(SOLVER.format(bucket=folder / "bucket"))
    return str(file)


async def _fill(folder: Path, alarm: bool) -> None:
    pipeline = await open_pipeline(str(folder / "bucket"), "toy")
    await _fill_statistics(pipeline, folder)
    if alarm:
        bad = BadRuns(2, "only 0 of 90 executions ran to an answer", pipeline.now_ms())
        await pipeline.health.update(lambda _: Health(commits={"e" * 40: bad}))
        await _lose_alarms(pipeline, bad.why)
    queue = BuildQueue(queue=("a" * 40,), built=("b" * 40,), failed=("c" * 40,))
    await pipeline.queue.update(lambda _: queue)
    both = ("main", "release/1")
    entries = [Entry("d" * 40, 7, branches=both), Entry("e" * 40, branches=both[:1])]
    await pipeline.schedule.update(lambda _: tuple(entries))
    progress = {name: BranchProgress("d" * 40, 1_790_000_000_000) for name in both}
    await pipeline.state.update(lambda _: State("d" * 40, 1_790_000_000_000, {}, progress))
    made = BuiltCombinations(built=("address",), failed={"plain": "its build failed"})
    await write_built(pipeline.bucket, "toy", "e" * 40, made)
    await pipeline.bucket.put(build_key("toy", "production", "e" * 40, "address"), b"archive")
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


async def _lose_alarms(pipeline: Pipeline, why: str) -> None:
    """Two notices of one alarm that did not arrive; one is sent again, one is given up."""
    now = pipeline.now_ms()
    alarm = alarm_of("toy", "e" * 40, why, 2, now)
    refused = "the alarm did not reach the webhook: it answered <b>503</b>"
    hook = failed_again(None, "webhook", alarm, refused, 6, now)
    mail = failed_again(None, "mail", alarm, "the alarm was not mailed: refused", 1, now)
    await outbox_file(pipeline).update(lambda _: Outbox(undelivered=[hook, mail]))


async def _fill_statistics(pipeline: Pipeline, folder: Path) -> None:
    """Runs of three days, what one commit reached first, and a coverage report."""
    now = pipeline.now_ms()
    for days, commit, coverage in ((2, "d" * 40, 100), (1, "d" * 40, 120), (0, "e" * 40, 150)):
        run = RunPoint(
            at_ms=now - days * DAY_MS, commit=commit, engine="libfuzzer", target="fuzz_parse",
            combination="address",
            executions=1_000_000, seconds=3_600, coverage=coverage, corpus=50 + coverage,
            new_findings=int(days == 2), new_functions=2, new_lines=7,
        )  # fmt: skip
        await record_run(pipeline, run)
    news = News([Function("src/parse.c", "parse_<b>term</b>(int)", 3)], 7)
    await ReachRecords(pipeline).add("e" * 40, "fuzz_parse", news)
    pages = folder / "pages"
    pages.mkdir()
    (pages / "index.html").write_text(REPORT)
    (pages / "page0.html").write_text(REPORT)
    (pages / "page1.css").write_text("h1 { color: rgb(1, 2, 3) }")
    info = ReportInfo(
        id="one", commit="e" * 40, made_at_ms=now, tool="llvm-cov", inputs=9, complete=True,
        functions=3, all_functions=4, lines=30, all_lines=40,
        targets=[
            TargetReport(
                target="fuzz_parse", page="page0.html", tool="llvm-cov", inputs=9, complete=True,
                functions=2, all_functions=3, lines=20, all_lines=25,
            ),
            TargetReport(target="fuzz_<b>", problem="no input wrote any coverage"),
        ],
    )  # fmt: skip
    await HtmlStore(pipeline).save(pages, info)
