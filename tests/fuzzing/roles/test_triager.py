"""Triage as jobs of their own: while fuzzers run, several at the same time, each bug once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.fuzzing.config.test_settings import SETTINGS
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import BROKEN, BUILD, FINE, World
from tests.fuzzing.trackers.servers import SECRET, Receiver, running
from tests.support.running import run
from windlass_fuzz.cli.report_output import say_triaged
from windlass_fuzz.config.fleet_schedules import WorkerCommand, schedules_of
from windlass_fuzz.config.settings import convert_settings
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.signature import Signature, claim_of
from windlass_fuzz.findings.claims import Claims
from windlass_fuzz.findings.known import waiting_for
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.findings.untriaged import Untriaged
from windlass_fuzz.roles.combinations.recheck import recheck_findings
from windlass_fuzz.roles.fuzzer import Fuzzer
from windlass_fuzz.roles.triager import Triager, TriageReport
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.statistics.history import RunPoint, record_run

LONG_MS = 600_000  # a limit, not a wait
# Two bugs, each with a message of its own.
TWO_BUGS = """#!/bin/sh
if grep -q 'one 0' $1; then echo 'first is bad' >&2; kill -ABRT $$; fi
if grep -q 'two 0' $1; then echo 'second is bad' >&2; kill -ABRT $$; fi
echo fine
"""
ONE_INPUT = "#!/bin/sh\nprintf 'exactly this' | cmp -s - $1 && kill -ABRT $$\nexit 0\n"
BOTH = {"SIGABRT: first is bad", "SIGABRT: second is bad"}


async def triage(world: World, role: str = "triage", **options: Any) -> TriageReport:
    return await Triager(world.solver, world.pipeline, world.work(role), **options).run_once()


async def findings_of(world: World) -> list[Finding]:
    return [one async for one in FindingStore(world.pipeline).all(print)]


async def leave(world: World, commit: str, *texts: str) -> None:
    """Uploads inputs as a fuzzer does that found them."""
    folder = world.work("left")
    for text in texts:
        (folder / f"crash-{text.replace(' ', '-')}").write_text(text)
    await Untriaged(world.pipeline).keep(commit, folder)


def two_bugs(tmp_path: Path) -> tuple[World, str]:
    world = World(tmp_path)
    good, bad = world.commit("good"), world.commit("bad", solver_sh=TWO_BUGS)
    run(world.build_and_schedule(good, bad))
    return world, bad


def test_a_bug_is_dated_by_another_job_while_its_engine_still_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    bad = world.commit("bad", solver_sh=BROKEN, **{"tests/bad.txt": "limit 0"})
    run(world.build_and_schedule(good, bad))

    async def both() -> tuple[bool, TriageReport]:
        fuzzing = asyncio.create_task(world.fuzz(bad, budget_ms=LONG_MS, triage_elsewhere=True))
        while not world.objects("untriaged"):
            await world.clock.sleep_ms(50)
        report = await triage(world)
        still = not fuzzing.done()
        fuzzing.cancel()
        await asyncio.gather(fuzzing, return_exceptions=True)
        return still, report

    still, report = run(both())
    (finding,) = run(findings_of(world))
    assert still, "the engine runs on"
    assert (report.findings, finding.introduced_by) == ([finding.key], bad)


def test_a_run_leaves_to_other_jobs_what_they_have_triaged(tmp_path: Path) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=ONE_INPUT, **{"tests/own.txt": "exactly this"})
    run(world.build_and_schedule(bad))

    async def both() -> list[str]:
        quiet = {"budget_ms": LONG_MS, "quiet_ms": 4_000, "triage_elsewhere": True}
        fuzzing = asyncio.create_task(world.fuzz(bad, **quiet))
        while not world.objects("untriaged"):
            await world.clock.sleep_ms(50)
        assert (await triage(world)).findings
        return (await fuzzing).findings

    found = run(both())
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.times) == ("open", 1), "its input is not triaged again"
    assert found == [finding.key], "the run's report names what others found in it"


def test_two_jobs_at_the_same_time_triage_each_bug_once(tmp_path: Path) -> None:
    world, bad = two_bugs(tmp_path)
    run(leave(world, bad, "one 0", "two 0"))

    async def both() -> list[TriageReport]:
        return list(await asyncio.gather(triage(world), triage(world, "another")))

    reports = run(both())
    found = run(findings_of(world))
    assert {one.title for one in found} == BOTH
    assert [one.times for one in found] == [1, 1], "neither did the work of the other again"
    assert sorted(key for one in reports for key in one.findings) == sorted(f.key for f in found)


def test_a_bug_that_another_job_has_is_left_to_it(tmp_path: Path) -> None:
    world, bad = two_bugs(tmp_path)
    run(leave(world, bad, "one 0", "two 0"))
    claims = Claims(world.pipeline, world.clock.now_ms())

    async def beside() -> TriageReport:
        first = Signature("crash", "SIGABRT: first is bad")
        async with claims.of(claim_of(first)) as ours:
            assert ours
            return await triage(world)

    report = run(beside())
    assert ({one.title for one in run(findings_of(world))}, report.untriaged) == (
        {"SIGABRT: second is bad"}, 1,
    )  # fmt: skip
    run(triage(world))
    assert {one.title for one in run(findings_of(world))} == BOTH


def test_inputs_that_come_in_during_triage_are_kept(tmp_path: Path) -> None:
    world, bad = two_bugs(tmp_path)
    waiting = Untriaged(world.pipeline)

    async def work() -> int:
        await leave(world, bad, "one 0")
        fetched = await waiting.fetch(bad, world.work("fetched"))
        await leave(world, bad, "two 0")
        await waiting.finish(bad, [], fetched)
        return len((await waiting.commits()).get(bad, []))

    assert run(work()) == 1


def test_a_file_that_has_changed_since_its_upload_is_not_dropped(tmp_path: Path) -> None:
    world, bad = two_bugs(tmp_path)
    folder = world.work("crashes")
    whole, partial = folder / "whole", folder / "partial"
    whole.write_text("one 0")
    partial.write_text("tw")

    async def work() -> None:
        ours = Untriaged(world.pipeline)
        await ours.keep(bad, folder)
        partial.write_text("two 0")
        await Untriaged(world.pipeline).finish(bad, [])
        await ours.drop_done(bad)

    run(work())
    assert (whole.exists(), partial.exists()) == (False, True)


def test_a_search_that_ran_out_of_time_is_continued(tmp_path: Path) -> None:
    world = World(tmp_path)
    good, bad = world.commit("good"), world.commit("bad", solver_sh=BROKEN)
    later = world.commit("later", solver_sh=f"{BROKEN}# later\n")
    run(world.build_and_schedule(good, bad, later))
    run(leave(world, later, "limit 0"))

    def run_out_of_time(said: str) -> None:
        if said.startswith("triaging"):
            world.clock.ahead_ms += LONG_MS

    run(triage(world, notify=run_out_of_time))
    (finding,) = run(findings_of(world))
    assert finding.last_good is None, "there was no time"
    assert run(triage(world)).dated == [finding.key]
    (finding,) = run(findings_of(world))
    assert (finding.introduced_by, finding.last_good) == (bad, good)
    assert run(triage(world)).dated == [], "it is over"


def test_a_fix_for_which_a_run_had_no_time_is_searched_for_by_a_job(tmp_path: Path) -> None:
    world = World(tmp_path)
    good, bad = world.commit("good"), world.commit("bad", solver_sh=BROKEN)
    fix, later = world.commit("fix", solver_sh=FINE), world.commit("later", solver_sh=f"{FINE}#")
    run(world.build_and_schedule(good, bad, fix, later))
    run(leave(world, bad, "limit 0"))
    run(triage(world))
    assert run(triage(world)).dated == [], "nothing is closed"

    async def recheck_late() -> None:
        fuzzer = Fuzzer(world.solver, world.pipeline, world.work("fuzzer"))
        await fuzzer.recheck(later)
        await FindingStore(world.pipeline).update(
            (await findings_of(world))[0].key, without_its_search
        )

    run(recheck_late())
    (finding,) = run(findings_of(world))
    assert (finding.closed_in, finding.ends) == (later, {})
    assert run(triage(world)).dated == [finding.key]
    (finding,) = run(findings_of(world))
    assert finding.ends[later].culprit == fix
    assert run(triage(world)).dated == [], "it is over"


def test_a_fix_that_a_run_had_no_time_to_check_is_noticed_by_a_job(tmp_path: Path) -> None:
    world = World(tmp_path)
    good, bad = world.commit("good"), world.commit("bad", solver_sh=BROKEN)
    fix = world.commit("fix", solver_sh=FINE)
    run(world.build_and_schedule(good, bad))
    run(leave(world, bad, "limit 0"))
    run(triage(world))
    run(world.build_and_schedule(fix))
    run(triage(world))
    (finding,) = run(findings_of(world))
    assert finding.state == "open", "nobody has fuzzed the fix"
    fuzzed(world, fix)
    run(triage(world))
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.closed_in) == ("closed", fix)
    assert finding.ends[fix].culprit == fix


def fuzzed(world: World, commit: str) -> None:
    """Notes that a commit was fuzzed."""
    point = RunPoint(at_ms=1, commit=commit, engine="command", target="solver")
    run(record_run(world.pipeline, point))


def test_a_fix_is_noticed_once_a_job_has_triaged_what_waited(tmp_path: Path) -> None:
    world = World(tmp_path)
    good, bad = world.commit("good"), world.commit("bad", solver_sh=BROKEN)
    fix = world.commit("fix", solver_sh=FINE)
    run(world.build_and_schedule(good, bad))
    run(leave(world, bad, "limit 0"))
    run(triage(world))
    run(world.build_and_schedule(fix))
    fuzzed(world, fix)
    mirror = Mirror(world.solver.repository, world.work("recheck") / "mirror.git")

    async def end_a_run_with_unseen_inputs() -> None:
        await mirror.fetch()
        await recheck_findings(
            world.solver, world.pipeline, world.work("recheck"), mirror, fix, print, unseen=True
        )

    run(end_a_run_with_unseen_inputs())
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.unsure) == ("open", waiting_for(fix))
    run(triage(world))
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.closed_in, finding.unsure) == ("closed", fix, "")


def test_an_incomplete_fix_closes_nothing_while_its_inputs_wait(tmp_path: Path) -> None:
    world = World(tmp_path)
    good, bad = world.commit("good"), world.commit("bad", solver_sh=BROKEN)
    half = world.commit("half", solver_sh=BROKEN.replace("limit 0", "limit 0 more"))
    run(world.build_and_schedule(good, bad))
    run(leave(world, bad, "limit 0"))
    run(triage(world))
    run(world.build_and_schedule(half))
    fuzzed(world, half)
    run(leave(world, half, "limit 0 more"))
    run(triage(world))
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.reopened) == ("open", 0)


def test_a_search_does_not_build_again_what_could_not_be_built(tmp_path: Path) -> None:
    world = World(tmp_path, more="bisect: build")
    good = world.commit("good")
    broken = world.commit("broken", build_sh="exit 1\n")
    bad = world.commit("bad", solver_sh=BROKEN, build_sh=BUILD)
    run(world.build_and_schedule(good, bad))
    run(world.enqueue(broken))
    assert run(world.build()).outcome == "failed"
    run(leave(world, bad, "limit 0"))
    said: list[str] = []
    run(triage(world, notify=said.append))
    (finding,) = run(findings_of(world))
    assert set(finding.suspects) == {broken, bad}
    assert not [line for line in said if "building" in line]


def without_its_search(known: Finding | None) -> Finding:
    """Returns a closed finding as a run leaves it that has no time to search for the fix."""
    assert known is not None
    return replace(known, ends={})


def test_the_time_line_goes_from_the_push_to_the_issue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WINDLASS_ISSUES_SECRET", SECRET)
    server = Receiver()
    world = World(tmp_path, more="commits: {extensions: [.sh]}")
    world.commit("good")
    bad = world.commit("bad", solver_sh=BROKEN)
    commands = Commands(world)
    for role in ("manager", "builder", "builder", "manager"):
        commands.ask(role, "scripted")
    run(leave(world, bad, "limit 0"))

    async def work() -> TriageReport:
        async with running(server):
            world.more += f"\nissues: {{tracker: webhook, url: '{server.address}/hook'}}"
            return await triage(world)

    say_triaged(run(work()), "scripted")
    said = capsys.readouterr().out
    (finding,) = run(findings_of(world))
    steps = ["pushed", "built", "scheduled", "first seen", "triaged", "dated", "reduced"]
    places = [said.index(f" {step}") for step in [*steps, "filed"]]
    assert places == sorted(places), said
    times = [finding.moments[step] for step in steps]
    assert times == sorted(times)
    assert finding.issue_at_ms >= times[-1]


def test_a_fleet_triages_in_jobs_of_their_own() -> None:
    needs = {"requires": ["big==true"], "secrets": ["TOKEN"]}
    solver = convert_settings(SETTINGS | {"roles": {"fuzzer": needs}}, Solver, "toy.yaml")
    planned = {one.name: one.request for one in schedules_of(solver, WorkerCommand("/x"))}
    triaging, fuzzing = planned["fuzz-toy-triage"], planned["fuzz-toy-fuzzer"]
    assert triaging.overlap == "allow", "several at the same time"
    argv = triaging.jobs[0].args["argv"]
    assert argv[:3] == ["windlass", "fuzz", "triage"]
    assert "--triage-elsewhere" in fuzzing.jobs[0].args["argv"]
    job = triaging.jobs[0]
    assert (list(job.requires), list(job.secrets)) == (needs["requires"], needs["secrets"])
