"""What a job's page shows beside the job: how to reproduce it, its chain, a retry with changes."""

import shlex
from typing import Any

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from windlass.domain.access.rights import Role
from windlass.domain.job.job import DEFAULT_NAMESPACE
from windlass.messages.sync import Finished


async def _ended(server: RunningServer, **fields: Any) -> int:
    number = await server.submit(job(**fields))
    await server.services.engine.jobs.cancel([number], "x", "admin")
    return number


def test_a_job_is_retried_with_other_arguments() -> None:
    async def scene() -> None:
        async with running_server() as server:
            number = await _ended(server, queue="fast", labels={"a": "b"})
            path = f"/api/v1/jobs/{number}/retry-with"
            args = {"argv": ["echo", "changed"]}
            done = (await server.admin.post(path, json={"args": args})).json()
            shown = await server.show(done["id"])
            assert (shown["args"], shown["queue"], shown["labels"]) == (args, "fast", {"a": "b"})
            assert shown["supersedes"] == number
            assert (await server.show(number))["args"] != args
            again = await server.admin.post(path, json={"args": args})
            assert (again.status_code, error_of(again)["code"]) == (409, "superseded")

    run(scene())


def test_a_retry_takes_no_arguments_that_do_not_fit_or_name_more_than_before() -> None:
    async def scene() -> None:
        async with running_server() as server:
            other = await server.submit(job())
            number = await _ended(server)
            path = f"/api/v1/jobs/{number}/retry-with"
            several: tuple[dict[str, Any], ...] = (
                {"argv": []}, {"argv": ["x"], "stdin": {"$result": other}},
                {"argv": ["x", {"$file": {"sha256": "0" * 64, "name": "n"}}]},
            )  # fmt: skip
            for args in several:
                refused = await server.admin.post(path, json={"args": args})
                assert refused.status_code == 422, (args, refused.text)
            running = await server.admin.post(f"/api/v1/jobs/{other}/retry-with", json={"args": {}})
            assert running.status_code in (409, 422)
            assert (await server.show(number))["superseded_by"] is None

    run(scene())


def test_a_retry_with_another_function_is_another_job() -> None:
    async def scene() -> None:
        async with running_server() as server:
            number = await _ended(server, task="python", args={"function": "a:b", "args": [1]})
            path = f"/api/v1/jobs/{number}/retry-with"
            other = await server.admin.post(path, json={"args": {"function": "c:d", "args": [1]}})
            assert other.status_code == 422, other.text
            assert "the same requirements for workers" in error_of(other)["message"]
            same = await server.admin.post(path, json={"args": {"function": "a:b", "args": [2]}})
            assert same.status_code == 200, same.text

    run(scene())


def test_the_chain_lists_all_that_superseded_each_other() -> None:
    async def scene() -> None:
        async with running_server() as server:
            first = await _ended(server)
            jobs = server.services.engine.jobs
            second = (await jobs.retry(first)).id
            await jobs.cancel([second])
            third = (await jobs.retry(second)).id
            for number in (first, second, third):
                told = (await server.admin.get(f"/api/v1/jobs/{number}/chain")).json()
                assert [one["id"] for one in told["jobs"]] == [first, second, third]
                assert [one["state"] for one in told["jobs"]] == ["canceled", "canceled", "queued"]
                assert told["more"] is False

    run(scene())


def test_a_job_says_how_to_run_it_again_without_its_secrets() -> None:
    async def scene() -> None:
        async with running_server() as server:
            metadata = {
                "isolation": ["process", "sandbox"], "isolation:default": "sandbox",
                "secret:KEY": "*",
            }  # fmt: skip
            worker = await server.worker("w", metadata=metadata)
            source = await _ended(server)
            args = {
                "argv": ["sh", "-c", "echo $A"], "env": {"A": "it's"},
                "inputs": [{"job": source, "artifact": "in.txt"}],
            }  # fmt: skip
            number = await server.submit(job(args=args, secrets=["KEY"], key="once", retries=2))
            viewer = await server.role(Role.VIEWER, DEFAULT_NAMESPACE)
            before = (await viewer.get(f"/api/v1/jobs/{number}/reproduce")).json()
            assert (before["worker"], before["isolation"]) == (None, None)
            (given,) = (await worker.sync(want=1)).jobs
            await worker.sync(finished=(Finished(number, given.attempt, "completed", 0),))
            told = (await viewer.get(f"/api/v1/jobs/{number}/reproduce")).json()
            words = shlex.split(told["command"])
            assert words[:2] == ["windlass", "submit"]
            assert words[-3:] == args["argv"]
            assert "once" not in words  # a second job with its key would be refused
            assert told["program"] == shlex.join(["sh", "-c", "echo $A"])
            assert told["env"]["A"] == "it's"
            assert told["env"]["WINDLASS_JOB"] == str(number)
            assert told["secrets"] == ["KEY"]
            assert told["fetch"] == [f"windlass artifacts {source} in.txt"]
            assert (told["worker"], told["isolation"]) == ("w", "sandbox")
            compile(told["python"], "told", "exec")
            await worker.enrol(metadata={"isolation": ["process"]})
            told = (await viewer.get(f"/api/v1/jobs/{number}/reproduce")).json()
            assert (told["worker"], told["isolation"]) == ("w", None), "it was restarted since"

    run(scene())
