"""`windlass fuzz` with a fleet: a change is checked in a job."""

import json
from pathlib import Path

from tests.cli.program import Program, run_here
from tests.fuzzing.roles.test_change_check import change
from tests.fuzzing.support.scripted_solver import BROKEN, World


def test_a_change_is_checked_in_a_job_and_its_results_are_fetched(
    up: Program, tmp_path: Path
) -> None:
    world = World(tmp_path)
    world.commit("good")
    head = change(world, solver_sh=BROKEN, **{"tests/new.txt": "limit 0\n"})
    solver, output = tmp_path / "scripted.yaml", tmp_path / "out"
    solver.write_text(world.description)
    where = ("--bucket", str(tmp_path / "bucket"), "--output", str(output))
    words = ("--head", "change", "--budget", "1s", "--fleet", *where)
    done = run_here(("fuzz", "check", str(solver), *words), up.environment)
    assert done.returncode == 1, done.stderr
    assert "refused: the change introduces a bug" in done.stdout
    result = json.loads((output / "result.json").read_text())
    assert (result["outcome"], result["head"]) == ("refused", head)
    (finding,) = result["findings"]
    assert b"limit 0" in (output / finding["input"]).read_bytes()
    assert "the change introduces a bug" in (output / "summary.md").read_text()
    jobs = up.json("jobs", "--label", "role=check")
    assert [one["name"] for one in jobs] == ["fuzz scripted check"]
