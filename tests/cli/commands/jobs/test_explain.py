"""`windlass explain` and `windlass time`, as people and scripts see them."""

from tests.cli.program import Program


def test_a_job_and_a_worker_are_explained(up: Program) -> None:
    job = up.text("submit", "--requires", "memory>=8TiB", "--", "true")
    shown = up.text("explain", job)
    name = up.json("workers")[0]["name"]
    assert shown.startswith(f"job {job} queued: waits for a worker that can run it: it needs")
    assert f"\nworkers:\n  worker {name}: needs memory ≥ 8 TiB, has " in shown
    assert f"what would let it run:\n  add a worker like {name} with memory ≥ 8 TiB" in shown
    idle = up.text("explain", f"worker:{name}")
    assert "needs memory ≥ 8 TiB" in idle
    assert up.json("explain", name)["worker"] == name
    up.text("cancel", job)
    assert up.json("explain", job)["summary"].startswith("canceled at ")


def test_the_time_of_a_job_is_told_by_cause(up: Program) -> None:
    job = up.text("submit", "--", "true")
    up.text("run", "--", "true")
    told = up.json("time", job)
    assert sum(part["seconds"] for part in told["parts"]) - told["total"] < 0.001
    assert f"job {job} " in up.text("time", job)


def test_what_is_not_there_is_named_and_exits_with_4(up: Program) -> None:
    for words, said in (
        (("explain", "99999999"), "job 99999999 does not exist"),
        (("explain", "nobody"), "worker nobody does not exist"),
        (("time", "99999999"), "job 99999999 does not exist"),
    ):
        done = up(*words)
        assert (done.returncode, done.stdout) == (4, "")
        assert said in done.stderr


def test_the_stack_of_a_program_is_refused_by_its_worker(up: Program) -> None:
    job = up.text("submit", "--", "sh", "-c", "exec sleep 60")
    try:
        shown = up.text("show", job, "--reproduce")
        assert "windlass submit -- sh -c 'exec sleep 60'" in shown
        while up.json("show", job)["state"] != "running":
            pass
        told = up("stack", job)
        assert told.returncode != 0
        assert "only running Python functions" in told.stderr
    finally:
        up.text("cancel", job)
