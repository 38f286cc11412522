"""Jobs run in processes of their own, and the server hears how they ended."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.worker.rig import Rig, play, state_of
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.worker.attempt import timers
from windlass.worker.core import slots


def test_a_job_runs_and_completes(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            job = await rig.submit("sh", "-c", "echo hello; echo trouble >&2")
            record = await rig.ended(job)
            assert (state_of(record), record.exit_code) == ("completed", 0)
            assert await rig.files.log_end(job) == b"hello\ntrouble\n"

    play(tmp_path, scene)


def test_the_exit_code_is_told_and_the_class_is_execution(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            record = await rig.ended(await rig.submit("sh", "-c", "exit 7"))
            assert (state_of(record), record.exit_code) == ("failed", 7)
            assert FAILURE_BY_CODE[record.failure] == "execution"
            assert record.message == "exit code 7"

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo start; echo 'no route to db' >&2; echo; exit 3", "exit code 3: no route to db"),
        (r"printf '10%%\r20%%\033[31m lost\033[0m\a'; exit 4", "exit code 4: 20% lost"),
        ("printf '%0900d\nx%0400d' 0 0; exit 5", "exit code 5: x" + "0" * 299),
        ("echo gone; kill -9 $$", "killed by SIGKILL: gone"),
        ("echo gone; exit 0", None),
    ],
)
def test_a_program_that_failed_is_quoted_with_its_last_line(
    tmp_path: Path, script: str, said: str | None
) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            record = await rig.ended(await rig.submit("sh", "-c", script))
            assert record.message == said

    play(tmp_path, scene)


def test_a_note_of_the_worker_is_not_what_the_program_said(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            args = {"argv": ["sh", "-c", "echo broken; exit 2"], "artifacts": ["missing"]}
            record = await rig.ended(await rig.submit(args=args))
            assert record.message == "exit code 2: broken"

    play(tmp_path, scene)


def test_the_logs_of_job_and_worker_warn_when_most_of_the_timeout_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timers, "NEAR", 1e-4)
    monkeypatch.setattr(slots, "LOOK_S", 0.01)

    async def scene(rig: Rig) -> None:
        async with rig.agent():
            job = await rig.submit("sleep", "60", timeout=1_000)
            await rig.files.log_line(job)
            await rig.engine.jobs.cancel([job])
            await rig.ended(job)
            warning = (
                "it will be stopped in 16 min 40 s, when its timeout of 16 min 40 s has passed"
            )
            assert (await rig.files.log_end(job)).decode() == f"[windlass] {warning}\n"
            told = [line for line in logs if line["event"] == "job near its timeout"]
            assert [(line["log_level"], line["reason"]) for line in told] == [("warning", warning)]

    with capture_logs() as logs:
        play(tmp_path, scene)


def test_a_signal_is_told_by_name(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            record = await rig.ended(await rig.submit("sh", "-c", "kill -SEGV $$"))
            assert (state_of(record), record.exit_code) == ("failed", 139)
            assert record.message == "killed by SIGSEGV"

    play(tmp_path, scene)


def test_a_program_that_is_not_there_is_a_matter_of_configuration(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            for argv in (["no-such-program"], ["/no/such/program"]):
                record = await rig.ended(await rig.submit(*argv))
                assert state_of(record) == "failed"
                assert FAILURE_BY_CODE[record.failure] == "configuration"
                assert argv[0] in (record.message or "")

    play(tmp_path, scene)


def test_arguments_that_are_wrong_reject_the_job_and_nothing_else(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            record = await rig.ended(await rig.submit(args={"argv": []}))
            assert state_of(record) == "rejected"
            assert FAILURE_BY_CODE[record.failure] == "configuration"
            assert state_of(await rig.ended(await rig.submit("true"))) == "completed"

    play(tmp_path, scene)


def test_a_job_sees_its_own_environment_and_not_the_agents_secrets(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process():
            job = await rig.submit("env", env={"GREETING": "hello"})
            await rig.ended(job)
            found = dict(
                line.split("=", 1) for line in (await rig.files.log_end(job)).decode().splitlines()
            )
            assert found["WINDLASS_JOB"] == str(job)
            assert found["WINDLASS_ATTEMPT"] == "1"
            assert found["GREETING"] == "hello"
            assert "PATH" in found
            assert "secret" not in found.values()

    play(tmp_path, scene)


def test_stdin_is_what_was_given_else_nothing(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            text = "a line\n" * 50_000
            job = await rig.submit("cat", stdin=text)
            empty = await rig.submit("cat")
            await rig.ended(job)
            assert await rig.files.log_end(job) == text.encode()
            assert state_of(await rig.ended(empty)) == "completed"
            assert (empty, 1) not in rig.files.logs

    play(tmp_path, scene)


def test_each_attempt_has_an_empty_folder(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            for _ in range(3):
                job = await rig.submit("sh", "-c", "ls -A; touch left-behind; mkdir -p a/b")
                assert state_of(await rig.ended(job)) == "completed"
                assert (job, 1) not in rig.files.logs

    play(tmp_path, scene)


def test_artifacts_are_kept_and_given_to_other_jobs(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            script = (
                "mkdir out; echo one > out/1.txt; echo two > out/2.txt; ln -s /etc/passwd out/3.txt"
            )
            first = await rig.submit("sh", "-c", script, artifacts=["out/*.txt"])
            await rig.ended(first)
            assert rig.files.artifacts == {
                (first, "out/1.txt"): b"one\n",
                (first, "out/2.txt"): b"two\n",
            }
            inputs = [{"job": first, "artifact": "out/2.txt", "path": "in/here"}]
            second = await rig.submit("cat", "in/here", inputs=inputs)
            assert state_of(await rig.ended(second)) == "completed"
            assert await rig.files.log_end(second) == b"two\n"

    play(tmp_path, scene)


def test_an_artifact_that_does_not_exist_is_no_fault_of_the_worker(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            first = await rig.submit("true")
            await rig.ended(first)
            job = await rig.submit("cat", "x", inputs=[{"job": first, "artifact": "x"}])
            record = await rig.ended(job)
            assert (state_of(record), record.facts.attempt) == ("failed", 1)
            assert FAILURE_BY_CODE[record.failure] == "configuration"
            assert f"artifact x of job {first} does not exist" in str(record.message)

    play(tmp_path, scene)


def test_many_jobs_share_the_slots(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        jobs = [await rig.submit("true") for _ in range(200)]
        async with rig.agent(slots=16):
            for job in jobs:
                assert state_of(await rig.ended(job)) == "completed"

    play(tmp_path, scene)
