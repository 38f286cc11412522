"""Commands about pools, and the guide to them, against a real installation."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.guide import carry_out
from tests.cli.program import Program
from windlass.providers.local import workers_below


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """`windlass up` without a worker of its own, whose pools are quick."""
    program = Program(tmp_path_factory.mktemp("pools"))
    words = ("up", "--port", "0", "--workers", "0", "--set", "pools_interval=300ms")
    with program.running(*words) as process:
        assert process.stdout is not None
        assert "windlass is up at http://127.0.0.1:" in process.stdout.readline()
        yield program
    assert process.returncode == 0
    assert workers_below(program.data) == [], "they end with `windlass up`"


def test_every_command_of_the_guide_runs(fleet: Program, tmp_path: Path) -> None:
    everything = "".join(carry_out("pools.md", fleet, tmp_path))
    assert "laptop: applied" in everything
    assert "pool laptop" in everything


def test_a_file_may_hold_several_pools(fleet: Program, tmp_path: Path) -> None:
    file = tmp_path / "pools.yaml"
    file.write_text("pools:\n  one: {max_workers: 0}\n  two: {max_workers: 0, priority: 2}\n")
    assert fleet.text("pools", "apply", str(file)) == "one: applied\ntwo: applied"
    assert fleet.text("pools", "apply", str(file)) == "one: nothing to do\ntwo: nothing to do"
    file.write_text(json.dumps({"pools": [{"name": "one", "max_workers": 0, "tags": ["x"]}]}))
    assert fleet.text("pools", "apply", str(file)) == "one: applied"
    listed = {pool["name"]: pool["description"] for pool in fleet.json("pools")}
    assert listed["one"]["tags"] == ["x"]
    assert listed["two"]["priority"] == 2
    shown = fleet.text("pools", "show", "one")
    assert shown.startswith("pool one: active")
    assert "tags                      x" in shown
    assert "no workers now" in shown


def test_workers_of_pools_end_with_what_started_them(fleet: Program, tmp_path: Path) -> None:
    """A pool that is left with a worker online; the fixture looks whether it stays behind."""
    file = tmp_path / "pool.yaml"
    file.write_text("name: left\nmin_workers: 1\n")
    fleet.text("pools", "apply", str(file))
    assert fleet.text("run", "--requires", "pool:name==left", "--", "echo", "here") == "here"
    assert workers_below(fleet.data)


def test_a_plan_tells_what_resources_allow_and_what_nobody_could_run(
    fleet: Program, tmp_path: Path
) -> None:
    file = tmp_path / "large.yaml"
    described = "name: large\nmax_workers: 0\ntarget_latency_seconds: 60\n"
    file.write_text(described + "resources: {cpus: 8, lathes: 4}\n")
    fleet.text("pools", "apply", str(file))
    wants = ("--requires", "pool:name==large", "--resources")
    jobs = [fleet.text("submit", *wants, "lathes=2", "--", "true") for _ in range(2)]
    jobs.append(fleet.text("submit", *wants, "lathes=8", "--", "true"))
    lines = fleet.text("pools", "plan").splitlines()
    assert (
        "default/default: shell: 2 queued (2 min) + 0 running (0 s left) / 0 slots = never" in lines
    )
    assert any(line.startswith("pool large, 0 workers: start none of 1: ") for line in lines)
    lacking = next(n for n, line in enumerate(lines) if "no worker can run it" in line)
    assert lines[lacking - 1].startswith("default/default: shell: 1 queued")
    assert (
        "a worker of pool large could not run it: needs resource:lathes ≥ 8, has 4"
        in lines[lacking]
    )
    supposed = fleet.text("pools", "plan", "--what-if", "workers=2")
    assert "2 queued (2 min) + 0 running (0 s left) / 4 slots = 30 s" in supposed
    said = fleet.text("explain", jobs[0])
    assert "but is at its limit (max_workers is 0)" in said


def test_what_is_wrong_is_said(fleet: Program, tmp_path: Path) -> None:
    impossible, useless = tmp_path / "impossible.yaml", tmp_path / "useless.yaml"
    impossible.write_text("name: p\nmin_workers: 3\nmax_workers: 1\n")
    useless.write_text("pools: 3\n")
    for words, code, said in (
        (("show", "nobody"), 4, "pool nobody does not exist"),
        (("plan", "--what-if", "luck=1"), 2, "workers=N or target=DURATION"),
        (("apply", "/does/not/exist"), 2, "a readable file (No such file or directory)"),
        (("apply", str(impossible)), 2, "min_workers to be at most max_workers (1)"),
        (("apply", str(useless)), 2, "a list of pools, or pools by name"),
    ):
        done = fleet("pools", *words)
        assert (done.returncode, said in done.stderr) == (code, True), (words, done.stderr)
