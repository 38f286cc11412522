"""Commit fuzzing over HTTP: what a server shows of a solver's bucket, and what it never does."""

import asyncio
import threading
from pathlib import Path

import pytest

from tests.dashboard import fuzz_bucket
from tests.fuzzing.trackers.servers import a_finding
from tests.support.running import run
from tests.support.running_server import error_of, running_server
from windlass.clock import RealClock
from windlass.domain.access.rights import Role
from windlass.domain.values.errors import NotFound, StoreUnavailable, TooManyRequests
from windlass_fuzz.buckets.layout import coverage_key
from windlass_fuzz.coverage import coverage_map
from windlass_fuzz.coverage.coverage_map import CoverageMap, Function
from windlass_fuzz.findings.record import OnBranch
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.server import metrics
from windlass_fuzz.server import reader as reading
from windlass_fuzz.server.reader import BucketReader
from windlass_fuzz.state.documents import BranchProgress, BuildQueue, Entry, State
from windlass_fuzz.state.open import open_pipeline

KEY = "k" * 16
INPUT = b"<script>alert(1)</script>"


def solver_file(folder: Path, bucket: str = "", more: str = "") -> str:
    file = folder / "toy.yaml"
    file.write_text(
        "name: toy\nrepository: /srv/toy.git\nbinaries: [toy]\n"
        f"bucket: {bucket or folder / 'bucket'}\n"
        "build: {production: [make], coverage: [make]}\n"
        f"engine: {{name: command, argv: [toy]}}\n{more}"
    )
    return str(file)


def files(folder: Path) -> list[Path]:
    """Everything in a bucket."""
    return sorted((folder / "bucket").rglob("*"))


async def fill(folder: Path) -> None:
    """A bucket with a queue, a finding with its input, and a coverage map."""
    pipeline = await open_pipeline(str(folder / "bucket"), "toy")
    await pipeline.queue.update(lambda _: BuildQueue(queue=("a" * 40,), failed=("b" * 40,)))
    store = FindingStore(pipeline)
    name = await store.put_input(KEY, INPUT, ".html")
    await store.update(KEY, lambda _: a_finding(key=KEY, input=name, size=len(INPUT)))
    functions = {
        Function("src/a.c", "f()", 1): frozenset({"t1", "t2"}),
        Function("src/a.c", "g()", 9): frozenset({"t2"}),
        Function("src/b.c", "h()", 1): frozenset({"t1"}),
    }
    body = coverage_map.encode(CoverageMap("c" * 40, functions))
    await pipeline.bucket.put(coverage_key("toy"), body)
    await pipeline.bucket.close()


def test_a_server_shows_the_state_findings_and_coverage_of_a_solver(tmp_path: Path) -> None:
    async def scenario() -> None:
        await fill(tmp_path)
        before = files(tmp_path)
        reader = BucketReader([solver_file(tmp_path)], Path(), RealClock())
        (solver,) = await reader.solvers()
        assert (solver.name, solver.queue, solver.open_findings) == ("toy", 1, 1)
        status = await reader.status("toy")
        assert (status.queue, status.failed) == (["a" * 40], ["b" * 40])
        assert [one.key for one in status.findings] == [KEY]
        found = await reader.finding("toy", KEY[:4])
        assert found.report.startswith(f"# `{found.title}`")
        given = await reader.input("toy", KEY)
        assert (given.name, given.data) == (f"{KEY}.html", INPUT)
        coverage = await reader.coverage("toy")
        assert (coverage.functions, coverage.tests, coverage.commit) == (3, 2, "c" * 40)
        assert [(f.path, f.functions, f.tests) for f in coverage.files] == [
            ("src/a.c", 2, 2), ("src/b.c", 1, 1),
        ]  # fmt: skip
        assert files(tmp_path) == before

    run(scenario())


def test_a_server_shows_the_branches_of_a_solver_and_of_its_findings(tmp_path: Path) -> None:
    async def scenario() -> None:
        await fill(tmp_path)
        pipeline = await open_pipeline(str(tmp_path / "bucket"), "toy")
        commit = "d" * 40
        progress = {"main": BranchProgress(commit, 5), "release/1": BranchProgress(left_out=True)}
        await pipeline.state.update(lambda _: State(commit, 5, {}, progress))
        await pipeline.schedule.update(lambda _: (Entry(commit, branches=("main",)),))
        known = [
            OnBranch(name="main", state="fixed", fixed_in=commit),
            OnBranch(name="release/1", since=commit, exact=True, merge=commit),
            OnBranch(name="release/0", watched=False),
        ]
        await FindingStore(pipeline).update(KEY, lambda _: a_finding(key=KEY, branches=known))
        file = solver_file(tmp_path, more="branches: [main, 'release/*']\n")
        reader = BucketReader([file], Path(), RealClock())
        (solver,) = await reader.solvers()
        assert solver.branches == ["main", "release/*"]
        status = await reader.status("toy")
        assert [(one.name, one.state, one.scheduled) for one in status.branches] == [
            ("main", "watched", 1), ("release/1", "left out", 0),
        ]  # fmt: skip
        assert [one.branches for one in status.schedule] == [["main"]]
        assert status.findings[0].branches == {"main": "fixed", "release/1": "alive"}
        found = await reader.finding("toy", KEY)
        assert {one.name: one.state for one in found.branches} == {
            "main": "fixed", "release/1": "alive", "release/0": "unwatched",
        }  # fmt: skip
        assert found.branches[1].text == "alive since {0}, through the merge {0}".format("d" * 12)
        await pipeline.bucket.close()

    run(scenario())


def test_a_missing_bucket_is_empty_and_is_not_made(tmp_path: Path) -> None:
    async def scenario() -> None:
        reader = BucketReader([solver_file(tmp_path)], Path(), RealClock())
        status = await reader.status("toy")
        assert (status.queue, status.findings, status.coverage_mapped_at) == ([], [], None)
        assert (await reader.coverage("toy")).functions == 0
        assert not (tmp_path / "bucket").exists()

    run(scenario())


def test_a_broken_bucket_gives_a_clear_error_and_is_left_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        await fill(tmp_path)
        (queue,) = (one for one in files(tmp_path) if one.name == "build-queue.json")
        queue.write_text("{broken")
        before = files(tmp_path)
        reader = BucketReader([solver_file(tmp_path)], Path(), RealClock())
        with pytest.raises(StoreUnavailable, match="cannot read the state of toy in"):
            await reader.status("toy")
        (solver,) = await reader.solvers()
        assert solver.problem is not None
        assert "build-queue.json" in solver.problem
        assert files(tmp_path) == before
        queue.unlink()
        assert (await reader.status("toy")).queue == []  # the failure was not kept

    run(scenario())


def test_a_disk_that_hangs_ends_in_an_error_blocks_nobody_and_is_read_once_for_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    answers = threading.Event()

    async def hang(*given: object, **_: object) -> None:
        opened.append(given)
        answers.wait(10)  # as a disk that is away: no loop knows of it
        raise OSError("away")

    async def scenario() -> None:
        reader = BucketReader([solver_file(tmp_path)], Path(), RealClock())
        asked = [reader.status("toy") for _ in range(20)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(one) for one in found} == {StoreUnavailable}
        assert "did not answer within" in str(found[0])
        assert len(opened) == 1
        for _ in range(7):
            with pytest.raises(StoreUnavailable):
                await reader.finding("toy", "k")
        with pytest.raises(TooManyRequests):
            await reader.finding("toy", "k")
        answers.set()

    monkeypatch.setattr(reading, "open_pipeline", hang)
    monkeypatch.setattr(reading, "MAX_S", 0.01)
    run(scenario())


def test_an_input_over_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        await fill(tmp_path)
        reader = BucketReader([solver_file(tmp_path)], Path(), RealClock())
        with pytest.raises(StoreUnavailable, match="more than 10 bytes"):
            await reader.input("toy", KEY)

    monkeypatch.setattr(reading, "MAX_INPUT", 10)
    run(scenario())


def test_over_http_an_input_is_saved_and_never_shown(tmp_path: Path) -> None:
    async def scenario() -> None:
        await fill(tmp_path)
        async with running_server(fuzz=(solver_file(tmp_path),)) as server:
            viewer = await server.role(Role.VIEWER)
            reply = await viewer.get(f"/api/v1/fuzz/toy/findings/{KEY}/input")
            assert reply.content == INPUT
            assert reply.headers["content-type"] == "application/octet-stream"
            assert reply.headers["content-disposition"].startswith("attachment")
            assert "sandbox" in reply.headers["content-security-policy"]
            assert (await viewer.get("/api/v1/fuzz")).json()["solvers"][0]["name"] == "toy"
            for path in ("other", "other/coverage", f"toy/findings/..%2f{KEY}"):
                missing = await viewer.get(f"/api/v1/fuzz/{path}")
                assert missing.status_code == 404, path
            limited = await server.role(Role.ADMIN, "a")
            refused = await limited.get("/api/v1/fuzz")
            assert (refused.status_code, error_of(refused)["code"]) == (403, "forbidden")

    run(scenario())


def test_statistics_what_a_commit_reached_and_alarms_are_shown(tmp_path: Path) -> None:
    async def scenario() -> None:
        reader = BucketReader([fuzz_bucket.make(tmp_path)], Path(), RealClock())
        found = await reader.statistics("toy")
        (series,) = found.series
        assert (series.runs, series.coverage, len(series.days)) == (3, 150, 3)
        assert [(one.commit[:1], one.gained) for one in found.commits] == [("e", 30), ("d", None)]
        assert found.report is not None
        assert (found.report.lines, found.report.all_lines) == (30, 40)
        (reached,) = (await reader.reached("toy", "e" * 40)).targets
        assert (reached.functions, reached.line_count) == (
            ["src/parse.c:parse_<b>term</b>(int)"], 7,
        )  # fmt: skip
        assert (await reader.reached("toy", "a" * 40)).targets == []
        for wrong in ("../state", "e/../../x", ""):
            with pytest.raises(NotFound):
                await reader.reached("toy", wrong)
        status = await reader.status("toy")
        assert [(one.commit, one.runs) for one in status.unhealthy] == [("e" * 40, 2)]
        assert status.last_run_at is not None

    run(scenario())


def test_alarms_that_did_not_arrive_are_shown_to_those_who_may_read_fuzzing(
    tmp_path: Path,
) -> None:
    solver = fuzz_bucket.make(tmp_path)

    async def scenario() -> None:
        async with running_server(fuzz=(solver,)) as server:
            viewer = await server.role(Role.VIEWER)
            lost = (await viewer.get("/api/v1/fuzz/toy")).json()["lost_alarms"]
            assert [(one["place"], one["tries"], one["commit"]) for one in lost] == [
                ("webhook", 1, "e" * 40), ("mail", 1, "e" * 40),
            ]  # fmt: skip
            assert "503" in lost[0]["why"]
            assert lost[0]["next_at"] is not None
            assert lost[1]["next_at"] is None
            limited = await server.role(Role.ADMIN, "team")
            for token in (limited, await server.http(None)):
                reply = await token.get("/api/v1/fuzz/toy")
                assert reply.status_code in (401, 403)
                assert "503" not in reply.text

    run(scenario())


def test_pages_of_the_coverage_report_can_do_nothing(tmp_path: Path) -> None:
    solver = fuzz_bucket.make(tmp_path)

    async def scenario() -> None:
        async with running_server(fuzz=(solver,)) as server:
            viewer = await server.role(Role.VIEWER)
            page = await viewer.get("/api/v1/fuzz/toy/report/index.html")
            assert (page.status_code, page.text) == (200, fuzz_bucket.REPORT)
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert page.headers["x-content-type-options"] == "nosniff"
            rules = page.headers["content-security-policy"].split("; ")
            assert {"sandbox allow-same-origin", "default-src 'none'", "form-action 'none'"} <= {
                *rules
            }
            assert not any("script" in rule for rule in rules)
            style = await viewer.get("/api/v1/fuzz/toy/report/page1.css")
            assert style.headers["content-type"] == "text/css; charset=utf-8"
            for wrong in ("page9.html", "report.json", "..%2f..%2ffuzzing-state%2fhealth.json"):
                reply = await viewer.get(f"/api/v1/fuzz/toy/report/{wrong}")
                assert reply.status_code == 404, wrong
            limited = await server.role(Role.VIEWER, "team")
            for token in (limited, await server.http(None)):
                reply = await token.get("/api/v1/fuzz/toy/report/index.html")
                assert reply.status_code in (401, 403)
                assert "Coverage" not in reply.text

    run(scenario())


def test_a_bucket_that_hangs_delays_no_metrics_and_shows_as_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    async def hang(*_: object, **__: object) -> None:
        answers.wait(10)
        raise OSError("away")

    async def scenario() -> None:
        async with running_server(fuzz=(solver_file(tmp_path),)) as server:
            reply = await server.admin.get("/metrics")
            assert 'windlass_fuzz_readable{solver="toy"} 0.0' in reply.text
            assert "windlass_fuzz_findings{" not in reply.text
            assert not answers.is_set()
            answers.set()

    monkeypatch.setattr(reading, "open_pipeline", hang)
    monkeypatch.setattr(metrics, "PATIENCE_S", 0.01)
    run(scenario())


def test_while_a_bucket_is_slow_its_last_counts_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        reader = BucketReader([fuzz_bucket.make(tmp_path)], Path(), RealClock())
        before = await reader.solvers()
        answers = threading.Event()

        async def hang(*_: object, **__: object) -> None:
            answers.wait(10)
            raise OSError("away")

        monkeypatch.setattr(reading, "FRESH_MS", 0)
        monkeypatch.setattr(reading, "open_pipeline", hang)
        assert await reader.solvers(0.01) == before
        answers.set()

    run(scenario())
