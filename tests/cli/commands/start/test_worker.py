"""What a worker offers by its command: secrets, tasks of imported modules, resources."""

import os
import re
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Program

MODULE = "tests.executors.named_functions"
VALUE = "s3cr3t-of-the-command-line"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """`windlass up` whose worker has a secret from its environment and imports a module."""
    program = Program(tmp_path_factory.mktemp("offers"))
    program.environment["WINDLASS_SECRET_TOKEN"] = VALUE
    program.environment["PYTHONPATH"] = str(Path.cwd())
    with program.start("up", "--port", "0", "--workers", "1", "--import", MODULE) as process:
        assert process.stdout is not None
        assert "windlass is up" in process.stdout.readline()
        yield program
        process.terminate()
        process.communicate(timeout=60)


def test_a_secret_reaches_its_job_and_no_output(program: Program) -> None:
    words = ("--secret", "TOKEN", "--", "sh", "-c", 'echo "${#TOKEN} $TOKEN"')
    done = program("run", *words)
    assert done.returncode == 0
    assert f"{len(VALUE)} ***" in done.stdout
    (job,) = program.json("jobs", "--limit", "1")
    shown = program.text("show", str(job["id"]), "--json")
    assert job["secrets"] == ["TOKEN"]
    assert VALUE not in shown
    assert VALUE.encode() not in b"".join(
        path.read_bytes() for path in program.data.rglob("*") if path.is_file()
    )


def test_an_imported_task_runs_and_its_misfits_are_refused(program: Program) -> None:
    ran = program("run", "--task", "thumbs.make", "--args", '{"width": 3}')
    assert ran.returncode == 0, ran.stderr
    refused = program("submit", "--task", "thumbs.make", "--args", '{"wide": 3}')
    assert refused.returncode == 2
    assert "thumbs.make(width: int" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_worker_with_resources_tells_them_and_takes_secrets_from_files(
    program: Program, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("from-a-file\n")
    offered = "cpus=3,licences=2,gpus=[4,5],ports=['p-1']"
    words = ("--name", "big", "--resources", offered, "--secret",
             f"FILED=@{tmp_path / 'file'}")  # fmt: skip
    with program.start("worker", *words) as process:
        try:
            job = program("run", "--secret", "FILED", "--resources", "licences=2", "--",
                          "sh", "-c", 'test "$FILED" = from-a-file')  # fmt: skip
            assert job.returncode == 0
            shown = program.json("workers", "show", "big")
            assert shown["slots"] == 3
            assert shown["metadata"]["resource:licences"] == 2
            assert shown["metadata"]["system:cpus"] == 3
            assert shown["metadata"]["secret:FILED"] == ["*"]
            check_indices(program)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate(timeout=60)


def check_indices(program: Program) -> None:
    """A running job, its worker and the list say which GPU and port it has."""
    script = "echo $CUDA_VISIBLE_DEVICES $WINDLASS_RESOURCE_PORTS; exec sleep 1000"
    job = program.text("submit", "--resources", "gpus=1,ports=1", "--", "sh", "-c", script)
    while not program.json("show", job)["indices"]:
        pass
    assert program.json("show", job)["indices"] == {"gpus": ["4"], "ports": ["p-1"]}
    assert "gpus 4; ports p-1" in program.text("show", job)
    assert program.json("workers", "show", "big")["indices"] == {
        "gpus": {"held": {"4": int(job)}, "free": ["5"]},
        "ports": {"held": {"p-1": int(job)}, "free": []},
    }
    assert "gpus 4 (1 of 2); ports p-1 (1 of 1)" in program.text("workers")
    assert re.search(rf"gpus +4 +{job}", program.text("workers", "show", "big"))
    program.text("cancel", job)


def _speaks(fifo: Path) -> bool:
    """Whether somebody writes to it before long."""
    fd = os.open(fifo, os.O_RDWR)
    try:
        return bool(select.select([fd], [], [], 30)[0])
    finally:
        os.close(fd)


def test_a_worker_obeys_its_own_drain_limit(program: Program, tmp_path: Path) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    words = ("--name", "hasty", "--resources", "haste=1", "--set", "drain_limit=100ms")
    with program.running("worker", *words) as process:
        script = f"echo go > {started}; exec sleep 1000"
        job = program.text("submit", "--resources", "haste=1", "--", "sh", "-c", script)
        assert _speaks(started)
        process.terminate()
        process.communicate(timeout=45)  # below the server's 60 s
        assert process.returncode == 0
    assert program.json("show", job)["state"] == "queued"
    program.text("cancel", job)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--secret", "NAME=in-the-open"), "NAME=@FILE"),
        (("--import", "no_such_module"), "no_such_module"),
        (("--resources", "cpus"), "name=amount"),
        (("--slots", "0"), "at least 1"),
        (("--set", "drain_limit=soon"), "drain_limit"),
        (("--set", "term_grace=1s"), "is for the server"),
        (("--cgroup", "/no/such/folder"), "cgroup"),
    ],
)
def test_what_cannot_be_offered_is_refused_at_start(
    program: Program, words: tuple[str, ...], said: str
) -> None:
    done = program("worker", "--name", "refused", *words)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "in-the-open" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_code_is_on_no_command_line_while_jobs_run(program: Program) -> None:
    for number, words in enumerate((("--code", "{}"), ("--code={}",))):
        code = program.text("workers", "code")
        flags = [word.format(code) for word in words]
        mine = f"coded{number}"
        with program.running("worker", "--name", mine, "--resources", f"{mine}=1", *flags):
            script = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
            seen = program.text("run", "--resources", f"{mine}=1", "--", "sh", "-c", script)
        assert mine in seen
        assert code not in seen
