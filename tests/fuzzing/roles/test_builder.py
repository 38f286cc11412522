"""The builder: uploads both builds or none, and every failure has a log and a next run."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzzing.support.process_exit import until_gone
from tests.fuzzing.support.scripted_solver import BUILD, ShiftedClock, World
from tests.support.running import run
from tests.support.waiting import until
from windlass.domain.values.errors import NotFound, Unreachable, WindlassError
from windlass_fuzz.buckets.layout import build_key, build_log_key
from windlass_fuzz.builds.build_runner import errors_in
from windlass_fuzz.processes.disk_space import DiskFull
from windlass_fuzz.roles import run_health
from windlass_fuzz.roles.build_steps import BuildSteps
from windlass_fuzz.roles.status import read_status
from windlass_fuzz.state.documents import BuildQueue

HANGS = "#!/bin/sh\necho $$ > {mark}\nsleep 600\n"
FAILS = """#!/bin/sh
echo so far so good
[ $1 = production ] || exit 7
mkdir build && cp solver.sh build/solver
"""


def queue_of(world: World) -> BuildQueue:
    return run(world.pipeline.queue.read())


def log_of(world: World, commit: str) -> str:
    stored = run(world.bucket.get(build_log_key("scripted", commit)))
    assert stored is not None
    return stored.body.decode()


async def both_exist(world: World, commit: str) -> bool:
    return await world.pipeline.has_build(commit)


def test_both_builds_are_uploaded_and_the_commit_is_built(tmp_path: Path) -> None:
    world = World(tmp_path)
    first, second = world.commit("one"), world.commit("two")
    run(world.enqueue(first, second))
    report = run(world.build())
    assert (report.outcome, report.commit) == ("built", first)
    assert run(both_exist(world, first))
    assert (queue_of(world).queue, queue_of(world).built) == ((second,), (first,))
    assert "production build" in log_of(world, first)
    assert not run(world.pipeline.leases.read()).build


def test_if_either_build_fails_nothing_is_uploaded_and_the_log_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("bad", build_sh=FAILS)
    run(world.enqueue(commit))
    report = run(world.build())
    assert (report.outcome, report.why) == ("failed", "the coverage build exited with code 7")
    assert queue_of(world).failed == (commit,)
    assert world.objects("builds") == []
    assert "so far so good" in log_of(world, commit)
    assert "exited with code 7" in log_of(world, commit)


def test_a_build_that_makes_nothing_has_failed(tmp_path: Path) -> None:
    world = World(tmp_path)
    run(world.enqueue(world.commit("empty", build_sh="#!/bin/sh\ntrue\n")))
    report = run(world.build())
    assert report.outcome == "failed"
    assert "build/solver" in report.why


def test_a_binary_that_is_a_link_within_the_build_is_built_and_fuzzed(tmp_path: Path) -> None:
    world = World(tmp_path)
    versioned = BUILD + "mv build/solver build/solver-1\nln -s solver-1 build/solver\n"
    commit = world.commit("links", build_sh=versioned)
    run(world.build_and_schedule(commit))
    assert run(world.fuzz(commit, budget_ms=500)).outcome == "fuzzed"


def test_a_binary_that_is_a_link_out_of_the_build_has_failed_and_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    outside = f"{BUILD}cp build/solver {tmp_path}/outside\nln -sf {tmp_path}/outside build/solver\n"
    run(world.enqueue(world.commit("leads out", build_sh=outside)))
    report = run(world.build())
    assert report.outcome == "failed"
    assert f"build/solver (binaries) is a link to {tmp_path}/outside" in report.why
    assert world.objects("builds") == []


def test_a_build_without_a_script_has_failed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("one")
    world.git("rm", "--quiet", "build.sh")
    world.git("commit", "--quiet", "--message", "no script")
    run(world.enqueue(world.git("rev-parse", "HEAD")))
    assert run(world.build()).outcome == "failed"


class SkippingClock(ShiftedClock):
    """A clock that skips ahead of the build's timeout once the build has written its pid."""

    def __init__(self, mark: Path) -> None:
        super().__init__()
        self._mark = mark

    def now_ms(self) -> int:
        return super().now_ms() + (120_000 if pid_in(self._mark) is not None else 0)


def test_a_hanging_build_is_ended_and_the_next_run_goes_on(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    world = World(tmp_path, clock=SkippingClock(mark))
    hanging = world.commit("hangs", build_sh=HANGS.format(mark=mark))
    run(world.enqueue(hanging))
    report = run(world.build())
    assert (report.outcome, "longer than 60 s" in report.why) == ("failed", True)
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()
    good = world.commit("good", build_sh="#!/bin/sh\nmkdir build\ncp solver.sh build/solver\n")
    run(world.enqueue(good))
    assert run(world.build()).commit == good


def start(world: World) -> subprocess.Popen[str]:
    """Starts a builder as a separate process."""
    (world.folder / "scripted.yaml").write_text(world.description)
    return subprocess.Popen(
        [sys.executable, "-m", "windlass", "fuzz", "builder", "scripted"], cwd=world.folder,
        env={**os.environ, "WINDLASS_FUZZ_BUCKET": str(world.folder / "bucket"),
             "WINDLASS_FUZZ_WORK": str(world.folder / "work")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def pid_in(mark: Path) -> int | None:
    text = mark.read_text().strip() if mark.exists() else ""
    return int(text) if text else None


async def until_begun(mark: Path) -> int:
    async def begun() -> bool:
        return pid_in(mark) is not None

    await until("the build has begun", begun, 60)
    return pid_in(mark) or 0


def test_a_killed_builder_loses_the_commit_to_the_next_and_at_last_it_fails(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    mark = tmp_path / "pid"
    commit = world.commit("hangs", build_sh=HANGS.format(mark=mark))
    run(world.enqueue(commit))
    builder = start(world)
    script = run(until_begun(mark))
    builder.kill()
    builder.communicate()
    run(until_gone(script))
    assert queue_of(world).queue == (commit,)
    for _ in range(2):  # the next builder has it at once, and two more die
        assert run(BuildSteps(world.pipeline).take(1_000)).held is not None
        assert run(world.build()).outcome == "nothing", "somebody has it"
        world.clock.ahead_ms += 3_600_000
    report = run(world.build())
    assert (report.outcome, report.given_up) == ("nothing", [commit])
    assert queue_of(world).failed == (commit,)
    assert "never finished" in log_of(world, commit)


def test_a_stopped_builder_gives_the_commit_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    mark = tmp_path / "pid"
    commit = world.commit("hangs", build_sh=HANGS.format(mark=mark))
    run(world.enqueue(commit))
    builder = start(world)
    script = run(until_begun(mark))
    builder.send_signal(signal.SIGTERM)
    _, said = builder.communicate(timeout=60)
    assert (builder.returncode, "released" in said) == (5, True)
    assert not Path(f"/proc/{script}").exists()
    assert queue_of(world).queue == (commit,)
    assert not run(world.pipeline.leases.read()).build


def test_an_unknown_commit_by_hand_changes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    run(world.enqueue(world.commit("one")))
    before = queue_of(world)
    with pytest.raises(NotFound, match="commit 0123456"):
        run(world.build(commit="0123456789"))
    assert queue_of(world) == before


def test_a_commit_by_hand_is_built_in_this_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    first, second = world.commit("one"), world.commit("two")
    run(world.enqueue(first))
    assert run(world.build(commit=second[:10])).commit == second
    assert queue_of(world).queue == (first,)


def test_a_commit_that_is_gone_from_the_repository_has_failed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("one")
    gone = "a" * 40
    run(world.enqueue(gone))
    assert run(world.build()).outcome == "failed"
    assert gone in log_of(world, gone)


def test_a_shallow_clone_is_named_and_the_commit_stays(tmp_path: Path) -> None:
    world = World(tmp_path)
    old = world.commit("one")
    world.commit("two")
    shallow = tmp_path / "shallow"
    source = f"file://{world.repository}"
    subprocess.run(["git", "clone", "-q", "--depth=1", source, str(shallow)], check=True)
    world.repository = shallow
    run(world.enqueue(old))
    with pytest.raises(WindlassError, match="unshallow"):
        run(world.build())
    assert queue_of(world).queue == (old,)
    assert not run(world.pipeline.leases.read()).build


def test_a_repository_that_does_not_answer_is_not_the_commits_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINDLASS_JOB", raising=False)  # a job is told that its worker may hide it
    world = World(tmp_path)
    commit = world.commit("one")
    run(world.enqueue(commit))
    world.repository.rename(tmp_path / "away")
    with pytest.raises(Unreachable, match="check its address"):
        run(world.build())
    (tmp_path / "away").rename(world.repository)
    assert run(world.build()).commit == commit


def test_a_full_disk_is_not_the_commits_fault(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one")
    run(world.enqueue(commit))
    archive = world.work("builder") / "archives" / f"{commit}-production.tar.gz"
    archive.parent.mkdir()
    archive.symlink_to("/dev/full")
    with pytest.raises(DiskFull, match="free some"):
        run(world.build())
    assert queue_of(world).queue == (commit,)
    archive.unlink()
    assert run(world.build()).outcome == "built"


def test_only_one_of_two_builders_gets_a_commit(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one")
    run(world.enqueue(commit))
    assert run(BuildSteps(world.pipeline).take(60_000)).held is not None
    assert run(world.build()).outcome == "nothing"
    assert not run(world.bucket.exists(build_key("scripted", "production", commit)))


def with_unreachable_part(world: World) -> str:
    """Commits a submodule at an address where nobody answers."""
    first = world.git("rev-parse", "HEAD")
    modules = '[submodule "part"]\n\tpath = part\n\turl = http://127.0.0.1:9/part.git\n'
    (world.repository / ".gitmodules").write_text(modules)
    world.git("update-index", "--add", "--cacheinfo", f"160000,{first},part")
    world.git("add", ".gitmodules")
    world.git("commit", "--quiet", "--message", "with a part")
    return world.git("rev-parse", "HEAD")


def test_a_submodule_whose_host_does_not_answer_is_not_the_commits_fault(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("one")
    commit = with_unreachable_part(world)
    run(world.enqueue(commit))
    with pytest.raises(Unreachable, match="submodule"):
        run(world.build())
    assert (queue_of(world).queue, queue_of(world).failed) == ((commit,), ())
    assert not run(world.pipeline.leases.read()).build


def test_a_submodule_whose_host_does_not_answer_holds_up_no_other_commit(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("one")
    bad = with_unreachable_part(world)
    run(world.enqueue(bad, good))
    with pytest.raises(Unreachable):
        run(world.build())
    assert queue_of(world).queue == (good, bad)
    assert run(world.build()).commit == good


def test_a_new_build_that_answers_no_test_raises_an_alarm(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    refuses = world.commit("wrong flag", solver_sh="#!/bin/sh\nexit 2\n")
    crashes = world.commit("crashes", solver_sh="#!/bin/sh\nkill -ABRT $$\n")
    run(world.enqueue(good, refuses, crashes))
    alarms = [run(world.build()).alarm for _ in range(3)]
    assert alarms == ["", "the new build does not answer the only test that was tried", ""]
    assert queue_of(world).built == (good, refuses, crashes)
    (sick,) = run(read_status(world.pipeline)).unhealthy
    assert (sick.commit, sick.runs) == (refuses, 0)


def test_a_builder_does_not_wait_for_an_input_as_long_as_its_solver_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_health, "TRIAL_OF_ONE_MS", 300)
    world = World(tmp_path, more="input_timeout: 10m")
    run(world.enqueue(world.commit("slow", solver_sh="#!/bin/sh\nexec sleep 600\n")))
    report = run(world.build())
    assert (report.outcome, report.alarm) == ("built", "")


def test_what_a_failed_build_printed_is_shown_from_its_first_error_on() -> None:
    before = "".join(f"[ {n}%] Building {n}.cpp\n" for n in range(500))
    after = "".join(f"note: candidate {n}\n" for n in range(500))
    printed = f"{before}a.cpp:7: error: no such thing\n{after}make: *** [all] Error 1\n"
    shown = errors_in(printed, 1_000)
    assert shown.startswith("a.cpp:7: error: no such thing\nnote: candidate 0\n")
    assert shown.endswith("make: *** [all] Error 1")
    assert re.search(r"\n\[\d+ characters omitted\]\n", shown)
    assert len(shown) < 1_100
    assert errors_in(before, 100) == before.strip()[-100:], "no line says what went wrong"
    near = f"{before}a.cpp:7: error: x\nmake: *** [all] Error 1\n"
    assert errors_in(near, 1_000) == near.strip()[-1_000:]
    assert errors_in("short\n", 1_000) == "short"
