"""Programs of jobs add jobs to their own workflow, through the socket of their agent."""

import os
import socket as socketlib
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.leftovers import remove_dead_sockets
from tests.support.running import run
from tests.worker.rig import Rig, play
from windlass.domain.job.job import JobSpec, decode_spec
from windlass.domain.lifecycle.workflow_state import Details
from windlass.engine.submit.submission import WorkflowSpec
from windlass.worker.attempt.job_socket import APART, NOTE, PATH_LIMIT, JobSocket
from windlass.worker.attempt.secrets import Secrets

TELL = ["sh", "-c", 'echo "$WINDLASS_AGENT"; echo "$WINDLASS_AGENT_TOKEN"; exec sleep 1000']
SECRET = "s3cr3t-of-the-fleet"
CHILD: dict[str, Any] = {"jobs": [{"task": "shell", "args": {"argv": ["true"]}}]}


async def planner(rig: Rig) -> tuple[int, int]:
    """Submit a workflow of one job that tells how to reach its agent; both ids."""
    spec = WorkflowSpec(name="w", namespace="default", details=Details())
    made = await rig.engine.submit([JobSpec(task="shell", args={"argv": TELL})], spec)
    return made.known_workflow, made.ids[0]


async def ask(
    socket: str, token: str | None, body: Any = CHILD, path: str = "/api/v1/jobs"
) -> tuple[int, Any]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(socket)) as session,
        session.post(f"http://agent{path}", json=body, headers=headers) as answer,
    ):
        return answer.status, await answer.json()


def test_any_program_adds_jobs_while_its_attempt_runs(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(gateway=rig.gateway):
            workflow, job = await planner(rig)
            socket, token = await rig.files.log_line(job, lines=2)
            status, done = await ask(socket, token, {**CHILD, "key": "k"})
            assert (status, done["applied"], done["workflow"]) == (201, [True], workflow)
            again = await ask(socket, token, {**CHILD, "key": "k"})
            assert again == (201, {**done, "applied": [False], "at": 0})
            child = await rig.record(done["ids"][0])
            assert child.facts.workflow == workflow
            await rig.engine.jobs.cancel([job])
            await rig.ended(job)
            status, refused = await ask(socket, token)
            assert (status, refused["error"]["code"]) == (401, "unauthorized")

    play(tmp_path, scene)


def test_what_is_wrong_is_told(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(gateway=rig.gateway):
            _, job = await planner(rig)
            socket, token = await rig.files.log_line(job, lines=2)
            for wrong in (None, "guess"):
                assert (await ask(socket, wrong))[0] == 401
            assert (await ask(socket, token, path="/api/v1/tokens"))[0] == 404
            status, told = await ask(socket, token, {"jobs": [{"tsk": "shell"}]})
            assert (status, told["error"]["field"]) == (422, "body")
            status, told = await ask(
                socket, token, {"jobs": [{"task": "shell", "priority": "urgent"}]}
            )
            assert (status, told["error"]["field"]) == (422, "jobs[0].priority")

    play(tmp_path, scene)


def test_what_the_server_forbids_is_told_as_such(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(gateway=rig.gateway):
            _, job = await planner(rig)
            socket, token = await rig.files.log_line(job, lines=2)
            foreign = {"jobs": [{**CHILD["jobs"][0], "namespace": "other"}]}
            status, told = await ask(socket, token, foreign)
            assert (status, told["error"]["code"]) == (403, "forbidden")

    play(tmp_path, scene)


def test_no_secret_of_a_job_goes_with_its_children(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        held = Secrets({("*", "TOKEN"): SECRET})
        async with rig.agent(gateway=rig.gateway, secrets=held):
            spec = WorkflowSpec(name="w", namespace="default", details=Details())
            first = JobSpec(task="shell", args={"argv": TELL}, secrets=("TOKEN",))
            job = (await rig.engine.submit([first], spec)).ids[0]
            socket, token = await rig.files.log_line(job, lines=2)
            named = {**CHILD["jobs"][0], "name": f"deploy {SECRET}", "labels": {"with": SECRET}}
            status, done = await ask(socket, token, {"jobs": [named], "key": f"once {SECRET}"})
            assert status == 201, done
            child = decode_spec((await rig.record(done["ids"][0])).spec)
            assert (child.name, child.labels) == ("deploy ***", {"with": "***"})
            passed = {"task": "shell", "args": {"argv": ["login", SECRET]}}
            status, told = await ask(socket, token, {"jobs": [CHILD["jobs"][0], passed]})
            assert (status, told["error"]["field"]) == (422, "jobs[1].args")
            assert SECRET not in str(told)
            assert SECRET not in repr(await rig.store.snapshot())

    play(tmp_path, scene)


def test_an_attempt_whose_lease_was_given_away_adds_nothing(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(gateway=rig.gateway) as agent:
            _, job = await planner(rig)
            socket, token = await rig.files.log_line(job, lines=2)
            before = len((await rig.store.snapshot()).jobs)
            await rig.enrol("w", takeover=True, replaces=agent.incarnation)
            status, told = await ask(socket, token)
            # Either the server refuses the attempt, or its agent knows by now.
            assert (status, told["error"]["code"]) in ((409, "lease_lost"), (401, "unauthorized"))
            assert len((await rig.store.snapshot()).jobs) == before

    play(tmp_path, scene)


def test_the_socket_is_its_users_alone_and_goes_with_the_agent(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir(mode=0o700)
    with socketlib.socket(socketlib.AF_UNIX) as left:  # by an agent that was killed
        left.bind(str(tmp_path / "w" / "agent.sock"))
    for name in ("w", "w" * PATH_LIMIT):
        seen: list[Path] = []

        async def scene(rig: Rig, name: str = name, seen: list[Path] = seen) -> None:
            async with rig.agent(name, gateway=rig.gateway):
                _, job = await planner(rig)
                socket, _ = await rig.files.log_line(job, lines=2)
                seen.append(Path(socket))
                assert len(socket) <= PATH_LIMIT
                assert os.stat(socket).st_mode & 0o777 == 0o600
                assert os.stat(os.path.dirname(socket)).st_mode & 0o077 == 0

        play(tmp_path, scene)
        assert not seen[0].exists()


def test_the_next_agent_removes_what_a_killed_one_left_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / ("w" * PATH_LIMIT)
    folder.mkdir()

    async def scene() -> None:
        killed, following = JobSocket(folder), JobSocket(folder)
        killed.open()
        following.open()
        assert not killed.path.parent.exists()
        assert following.path.exists()
        await following.close()
        assert not following.path.parent.exists()
        assert list(folder.iterdir()) == []
        await killed.close()

    run(scene())


def test_nothing_else_is_removed_whatever_the_note_says(tmp_path: Path) -> None:
    folder, kept = tmp_path / ("w" * PATH_LIMIT), tmp_path / "kept"
    folder.mkdir()
    kept.mkdir()
    (tmp_path / f"{APART}link").symlink_to(kept)

    async def scene(told: Path) -> None:
        (folder / NOTE).write_text(str(told))
        socket = JobSocket(folder)
        socket.open()
        await socket.close()

    for told in (kept, tmp_path / f"{APART}link", tmp_path / f"{APART}nowhere"):
        run(scene(told))
        assert kept.exists()


def test_only_sockets_that_nobody_listens_on_are_cleaned_up(tmp_path: Path) -> None:
    dead, alive = tmp_path / f"{APART}dead", tmp_path / f"{APART}alive"
    for place in (dead, alive):
        place.mkdir()
    with socketlib.socket(socketlib.AF_UNIX) as left, socketlib.socket(socketlib.AF_UNIX) as used:
        left.bind(str(dead / "agent.sock"))
        left.close()
        used.bind(str(alive / "agent.sock"))
        used.listen(1)
        assert remove_dead_sockets(tmp_path) == [dead]
    assert (dead.exists(), alive.exists()) == (False, True)
