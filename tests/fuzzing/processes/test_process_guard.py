"""The programs of a builder or fuzzer end with it, even if it is killed."""

from pathlib import Path

import pytest

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.process_exit import gone, until_gone
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from tests.support.waiting import until

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
