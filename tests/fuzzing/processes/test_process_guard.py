"""The programs of a builder or fuzzer end with it, even if it is killed."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.process_exit import gone, until_gone
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from tests.support.waiting import until
from windlass_fuzz.processes import guard_program
from windlass_fuzz.processes.guard_program import start_time, wait_for_end

# It ends at once until it is told to stay: a builder tries a new build, too. Then there are
# the script itself, a child in its group, and one that has left for a session of its own.
FAMILY = """#!/bin/sh
[ -e {mark}.stay ] || exit 0
sleep 600 &
echo $! > {mark}.child
setsid sh -c 'trap "" TERM; echo $$ > {mark}.away; while true; do sleep 600; done' &
echo $$ > {mark}.self
wait
"""
NAMES = ("self", "child", "away")


async def written_pids(mark: Path) -> list[int]:
    """Returns the processes once all of them have written their pids."""

    def said(name: str) -> str:
        file = mark.with_name(f"{mark.name}.{name}")
        return file.read_text().strip() if file.exists() else ""

    async def all_there() -> bool:
        return all(said(name) for name in NAMES)

    await until("all processes have begun", all_there, 60)
    return [int(said(name)) for name in NAMES]


@pytest.mark.parametrize("role", ["builder", "fuzzer"])
def test_what_it_runs_ends_when_it_is_killed(tmp_path: Path, role: str) -> None:
    world = World(tmp_path, cores=1, more="input_timeout: 10m")
    mark = tmp_path / "pid"
    script = FAMILY.format(mark=mark)
    stay = mark.with_name(f"{mark.name}.stay")
    if role == "builder":
        stay.touch()
        run(world.enqueue(world.commit("hangs", build_sh=script)))
    else:
        run(world.build_and_schedule(world.commit("hangs", solver_sh=script)))
        assert not list(tmp_path.glob("pid.*")), "the builder's own trial has left no pids"
        stay.touch()
    killed = Commands(world).start(role, "scripted")
    pids = run(written_pids(mark))
    assert not any(map(gone, pids))
    killed.kill()
    killed.communicate()
    run(until_gone(*pids))


def test_the_guard_holds_no_file_of_its_program() -> None:
    """A file that is closed twice elsewhere must not look like the program's end."""
    script = (
        "import os; from windlass_fuzz.processes.process_guard import guarded_environment\n"
        "before = os.listdir('/proc/self/fd'); guarded_environment()\n"
        "assert os.listdir('/proc/self/fd') == before"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("kernel", ["wakes us", "cannot wake us"])
def test_the_guard_waits_for_the_end_of_its_program(
    kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel == "cannot wake us":
        monkeypatch.setattr(os, "pidfd_open", refuse)
        monkeypatch.setattr(guard_program, "LOOK_S", 0.01)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        began = start_time(program.pid)
        wait_for_end(program.pid, f"{began}0")  # another process with the same pid
        assert program.poll() is None
        assert program.stdin is not None
        program.stdin.close()  # which ends it, soon
        wait_for_end(program.pid, began)
        assert start_time(program.pid) == ""


def refuse(pid: int, flags: int = 0) -> int:
    del pid, flags
    raise OSError(errno.ENOSYS, "no such call")
