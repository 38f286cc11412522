"""`Client.embedded`: the engine, its worker and its store in one program."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import windlass
from tests.embedded import functions
from tests.support.running import run
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.messages.jobs import Where

SLEEP = windlass.JobSpec(task="shell", args={"argv": ["sleep", "1000"]})


def test_a_program_submits_functions_and_gets_their_results(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=2) as client:
        job = client.submit(functions.add, 1, 2)
        assert job.result(timeout=60) == 3
        assert b"".join(job.logs()) == b"adding 1 2\n"
        assert client.submit(functions.double, 21).result(timeout=60) == 42
        shell = client.submit("shell", argv=["echo", "hi"])
        assert b"".join(shell.logs(follow=True)) == b"hi\n"
        assert [known.id for known in client.jobs(state="completed", task="python")] == [2, 1]


def test_failures_retries_and_cancels_are_those_of_the_other_client(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=2) as client:
        job = client.submit(functions.fail, "no luck")
        with pytest.raises(windlass.JobFailed, match="no luck"):
            job.result(timeout=60)
        again = job.retry()
        assert again.wait(timeout=60).supersedes == job.id
        endless = client.submit(SLEEP)
        with pytest.raises(TimeoutError):
            endless.wait(timeout=0.01)
        assert endless.cancel("enough") is True
        assert endless.wait(timeout=60).reason == "enough"
        assert client.cancel([endless.id]).jobs[0].applied is False


def test_functions_and_programs_see_the_programs_environment_but_nothing_of_windlass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://shop")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "shop.settings")
    for name in ("TOKEN", "SERVER", "STORE", "BLOBS", "CODE", "SECRET_KEY", "CONFIG", "DATA"):
        monkeypatch.setenv(f"WINDLASS_{name}", "hidden")
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=1) as client:
        seen = client.submit(functions.variables).result(timeout=60)
        shell = client.submit("shell", argv=["env"])
        printed = dict(
            line.split("=", 1) for line in b"".join(shell.logs(follow=True)).decode().splitlines()
        )
    for found in (seen, printed):
        assert found["DATABASE_URL"] == "postgresql://shop"
        assert found["DJANGO_SETTINGS_MODULE"] == "shop.settings"
        assert "hidden" not in found.values()
        assert not {
            name for name in found if name.startswith("WINDLASS_")
        } - {"WINDLASS_JOB", "WINDLASS_ATTEMPT", "WINDLASS_KEEPER", "WINDLASS_AGENT",
             "WINDLASS_AGENT_TOKEN"}  # fmt: skip
        assert set(os.environ) - set(found) <= {
            name for name in os.environ if name.startswith("WINDLASS_")
        }


def test_functions_and_programs_see_which_gpu_they_have(tmp_path: Path) -> None:
    offered = "gpus=[3,5]"
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=1, resources=offered) as client:
        call = functions.variable.job("CUDA_VISIBLE_DEVICES")
        both = client.submit(msgspec.structs.replace(call, resources={"gpus": 2}))
        assert both.result(timeout=60) == "3,5"
        assert client.submit(call).result(timeout=60) is None
        echo = windlass.JobSpec(
            task="shell", args={"argv": ["sh", "-c", "echo $WINDLASS_RESOURCE_GPUS"]},
            resources={"gpus": 1},
        )  # fmt: skip
        assert b"".join(client.submit(echo).logs(follow=True)) == b"3\n"
    with pytest.raises(InvalidInput, match=r"resources\.gpus"):
        windlass.Client.embedded(tmp_path / "jobs.db", resources="gpus=[a b]")


def test_bad_input_is_refused_as_a_server_would(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        with pytest.raises(NotFound, match="job 99"):
            client.job(99).info()
        with pytest.raises(NotFound):
            list(client.job(99).logs(follow=True))
        with pytest.raises(InvalidInput, match="argv"):
            client.submit("shell", argv=[])
        with pytest.raises(InvalidInput, match=r"jobs\[1\].retries"):
            client.submit_many([SLEEP, msgspec.structs.replace(SLEEP, retries=-1)])
        with pytest.raises(InvalidInput, match=r"unknown filter stat; did you mean state\?"):
            client.jobs(stat="failed")  # type: ignore[call-arg]
        with pytest.raises(Conflict, match="without a server"):
            _ = client.asynchronous.transport
    with pytest.raises(InvalidInput, match="workers"):
        windlass.Client.embedded(tmp_path / "jobs.db", workers=-1)


def test_jobs_outlive_the_program_that_submitted_them(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        jobs = client.submit_many([functions.add.job(n, n) for n in range(3)])
        assert {job.info().state for job in jobs} == {"queued"}
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=1) as client:
        assert [client.job(job.id).result(timeout=60) for job in jobs] == [0, 2, 4]


def test_the_asynchronous_client_does_the_same(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with windlass.AsyncClient.embedded(tmp_path / "jobs.db", workers=2) as client:
            job = await client.submit(functions.add, 2, 3)
            assert await job.result(60) == 5
            assert b"".join([chunk async for chunk in job.logs(follow=True)]) == b"adding 2 3\n"
            endless = await client.submit(SLEEP)
            assert await endless.cancel()
            assert (await endless.wait(60)).state == "canceled"

    run(scenario())


def test_running_jobs_get_their_time_when_the_client_is_closed(tmp_path: Path) -> None:
    go, seen = tmp_path / "go", tmp_path / "seen"
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=1, drain=0) as client:
        job = client.submit(functions.wait_for_file, str(go), str(seen))
        _wait_for(seen)
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        assert client.job(job.id).info().state == "queued"  # handed back, at no cost
    go.touch()
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=1) as client:
        ended = client.job(job.id).wait(timeout=60)
        assert (ended.state, ended.retry_count, ended.lost_count) == ("completed", 0, 0)


def test_a_client_says_so_if_it_was_closed_or_crossed_a_fork(tmp_path: Path) -> None:
    client = windlass.Client.embedded(tmp_path / "jobs.db", workers=0)
    child = os.fork()
    if child == 0:
        try:
            client.jobs()
        except Conflict as error:
            os._exit(0 if error.code == "forked_client" else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    client.close()
    with pytest.raises(Conflict, match="closed"):
        client.jobs()


SCRIPT = """
import windlass

@windlass.task
def cube(value):
    return value ** 3

{guard}
with windlass.Client.embedded("jobs.db", workers=1) as client:
    job = client.submit(cube, 3).wait(timeout=60)
    print(job.state, job.result, job.reason)
"""


def run_script(folder: Path, guard: bool) -> str:
    body = SCRIPT.format(guard='if __name__ == "__main__":' if guard else "")
    if guard:
        head, tail = body.split("with windlass", 1)
        body = head + "    with windlass" + tail.replace("\n    ", "\n        ")
    (folder / "program.py").write_text(body)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_program_may_be_a_single_file(tmp_path: Path) -> None:
    assert run_script(tmp_path, guard=True) == "completed 27 None"


def test_a_program_that_opens_its_client_on_import_is_told_what_to_do(tmp_path: Path) -> None:
    told = run_script(tmp_path, guard=False)
    assert told.startswith("rejected None")
    assert 'below `if __name__ == "__main__":`' in told


def _wait_for(path: Path) -> None:
    """In a test without a loop there is nobody to tell when another process wrote a file."""
    subprocess.run(
        ["sh", "-c", f"until [ -s '{path}' ]; do sleep 0.02; done"], timeout=60, check=True
    )


def test_many_jobs_are_changed_by_filter(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        jobs = client.submit_many([SLEEP] * 3)
        assert client.edit_many("cancel", Where(task="shell"), dry_run=True).matched == 3
        assert client.edit_many("prioritize", Where(task="shell"), adjustment=4).applied == 3
        assert jobs[0].info().priority.effective == 4
        assert client.edit_many("cancel", Where(task="shell"), reason="enough").applied == 3
        assert jobs[0].info().reason == "enough"
        with pytest.raises(InvalidInput, match="at least one filter"):
            client.edit_many("cancel", Where())
