"""Jobs in each mode of isolation behave as jobs: codes, signals, files, sockets, ends."""

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.support.debian import missing_reason
from tests.support.unprivileged import open_python, skip_reason
from tests.worker.rig import Rig, play, state_of
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.workflow_state import Details
from windlass.domain.matching.isolation import OFFERED
from windlass.domain.values.errors import InvalidInput
from windlass.engine.submit.submission import WorkflowSpec
from windlass.worker.keeper.landlock import SCOPES, version

Scene = Callable[[Rig], Coroutine[Any, Any, None]]

SUBMIT = """
import http.client, os, socket
class Agent(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.environ["WINDLASS_AGENT"])
agent = Agent("agent")
token = os.environ["WINDLASS_AGENT_TOKEN"]
body = '{"jobs": [{"task": "shell", "args": {"argv": ["true"]}}]}'
agent.request("POST", "/api/v1/jobs", body, {"Authorization": "Bearer " + token})
answer = agent.getresponse()
print(answer.status, answer.read().decode())
"""
DAEMON = "(trap '' TERM; setsid sleep 999 & ); echo started"
POLITE = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture(params=["process", "user", "sandbox"])
def mode(request: pytest.FixtureRequest) -> str:
    """A mode that this machine can do."""
    why = missing_reason("bwrap") if request.param == "sandbox" else skip_reason(request.param)
    if why is not None:
        pytest.skip(why)
    return str(request.param)


def test_codes_signals_output_and_files_are_as_in_any_mode(tmp_path: Path, mode: str) -> None:
    async def scene(rig: Rig) -> None:
        given = {"SHOP": "a b", "WINDLASS_TOKEN": "hidden"}
        async with rig.agent(isolation=mode, slots=4, variables=given) as agent:
            assert agent.machine.isolation.default == mode, agent.machine.isolation.lacking
            code = await rig.submit("sh", "-c", "echo out; echo err >&2; exit 7", retries=0)
            killed = await rig.submit("sh", "-c", "kill -9 $$", retries=0)
            missing = await rig.submit("no-such-program", retries=0)
            script = (
                "pwd > $HOME/where; mkdir d; echo kept > d/f; cat > in; test $PWD = $(cat where)"
            )
            files = await rig.submit("sh", "-c", script, stdin="given", artifacts=["d/*", "in"])
            seen = await rig.submit("sh", "-c", "echo $SHOP ${WINDLASS_TOKEN-none}")
            assert await rig.files.log_end(seen) == b"a b none\n"
            record = await rig.ended(code)
            assert (record.exit_code, record.message) == (7, "exit code 7: err")
            assert sorted((await rig.files.log_end(code)).split()) == [b"err", b"out"]
            record = await rig.ended(killed)
            assert (record.exit_code, record.message) == (137, "killed by SIGKILL")
            record = await rig.ended(missing)
            assert "program no-such-program was not found" in (record.message or "")
            if mode != "process":  # whose HOME is the worker's
                assert state_of(await rig.ended(files)) == "completed"
                assert rig.files.artifacts[files, "d/f"] == b"kept\n"
                assert rig.files.artifacts[files, "in"] == b"given"

    play(tmp_path, scene)


def test_a_job_chooses_its_own_home_user_and_folder_of_temporary_files(
    tmp_path: Path, mode: str
) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(isolation=mode):
            own = {"HOME": "/cache", "USER": "ann", "TMPDIR": "/var/tmp"}
            job = await rig.submit("sh", "-c", "echo $HOME $USER $TMPDIR", env=own)
            assert await rig.files.log_end(job) == b"/cache ann /var/tmp\n"

    play(tmp_path, scene)


@pytest.mark.skipif(os.geteuid() != 0, reason="only jobs of root's workers have other users")
def test_a_job_finds_its_folder_by_path_below_a_private_one_that_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)
    monkeypatch.chdir(tmp_path)  # which sandboxes show, but only root may enter

    async def scene(rig: Rig) -> None:
        async with rig.agent(isolation="sandbox"):
            job = await rig.submit("sh", "-c", "echo here > $HOME/file; cat $PWD/file")
            assert await rig.files.log_end(job) == b"here\n"

    play(tmp_path, scene)


def test_a_stop_reaches_the_program_and_nothing_outlives_the_job(tmp_path: Path, mode: str) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(isolation=mode, slots=2):
            mark = {"TEST_OF": str(tmp_path)}  # other installations also have a job 1
            daemon = await rig.submit("sh", "-c", DAEMON, env=mark)
            polite = await rig.submit("sh", "-c", POLITE)
            await rig.files.log_line(polite)
            await rig.engine.jobs.cancel([polite], "enough")
            await rig.ended(polite)
            assert (await rig.files.log_end(polite)).endswith(b"asked\n")
            await rig.ended(daemon)
            while _carriers(f"TEST_OF={tmp_path}".encode()):
                await rig.clock.sleep_ms(10)

    play(tmp_path, scene)


def _carriers(mark: bytes) -> list[str]:
    """The processes with this in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if mark in environ.split(b"\0"):
            found.append(pid)
    return found


def test_a_program_submits_jobs_through_the_socket(tmp_path: Path, mode: str) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(isolation=mode):
            spec = WorkflowSpec(name="w", namespace="default", details=Details())
            args = {"argv": [open_python(), "-S", "-c", SUBMIT]}
            made = await rig.engine.submit([JobSpec(task="shell", args=args)], spec)
            await rig.ended(made.ids[0])
            assert (await rig.files.log_end(made.ids[0])).startswith(b"201 ")

    play(tmp_path, scene)


def test_a_job_finds_no_descriptors_of_others(tmp_path: Path) -> None:
    """Many are started in one turn; each has a file of its own as standard input."""
    look = {"argv": ["sh", "-c", "ls -l /proc/self/fd | grep -c memfd"], "stdin": "own"}

    async def scene(rig: Rig) -> None:
        jobs = (await rig.engine.submit([JobSpec(task="shell", args=look)] * 6)).ids
        async with rig.agent(slots=6):
            for job in jobs:
                await rig.ended(job)
                assert await rig.files.log_end(job) == b"1\n"

    play(tmp_path, scene)


@pytest.mark.skipif(version() < SCOPES, reason="this kernel cannot keep signals back")
@pytest.mark.parametrize("trusted", [False, True])
def test_only_a_trusted_job_reaches_its_worker_with_signals(tmp_path: Path, trusted: bool) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(trusts_jobs=trusted) as agent:
            kept_by = "open" if trusted else "landlock"
            assert agent.machine.metadata["isolation:signals"] == kept_by
            job = await rig.submit("kill", "-0", str(os.getpid()), retries=0)
            ended = await rig.ended(job)
            assert state_of(ended) == ("completed" if trusted else "failed"), ended.message

    play(tmp_path, scene)


def test_a_program_that_ends_with_its_parent_is_not_killed_at_once(tmp_path: Path) -> None:
    """Its parent is a thread of the keeper, which must outlive it."""
    words = ["setpriv", "--pdeathsig", "KILL", "sleep", "0.3"]

    async def scene(rig: Rig) -> None:
        async with rig.agent(slots=2):
            job = await rig.submit(*words, retries=0)
            other = await rig.submit("true")
            assert state_of(await rig.ended(other)) == "completed"
            assert state_of(await rig.ended(job)) == "completed", (await rig.ended(job)).message

    play(tmp_path, scene)


def test_a_job_may_demand_more_than_its_worker_and_never_less(tmp_path: Path) -> None:
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)
    inside = "test -d /proc/1 && readlink /proc/self/ns/pid"

    async def scene(rig: Rig) -> None:
        async with rig.agent(isolation="process"):
            plain = await rig.submit("sh", "-c", inside)
            more = await rig.submit("sh", "-c", inside, isolation="sandbox")
            for job in (plain, more):
                assert state_of(await rig.ended(job)) == "completed"
            ours = os.readlink("/proc/self/ns/pid").encode()
            assert (await rig.files.log_end(plain)).strip() == ours
            assert (await rig.files.log_end(more)).strip() != ours
        async with rig.agent(isolation="sandbox"):
            for weaker in ("process", "user"):
                less = await rig.submit("sh", "-c", inside, isolation=weaker)
                await rig.ended(less)
                assert (await rig.files.log_end(less)).strip() != ours

    play(tmp_path, scene)


def test_a_sandbox_has_no_network_if_the_job_wants_none_and_hides_the_worker(
    tmp_path: Path,
) -> None:
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)
    look = f"cat {tmp_path}/open; ls {tmp_path}/w/groups {tmp_path}/w/lock; wc -l < /proc/net/dev"
    (tmp_path / "open").write_text("shared\n")
    tmp_path.chmod(0o755)

    async def scene(rig: Rig) -> None:
        async with rig.agent(shares=(tmp_path,)):
            alone = await rig.submit("sh", "-c", look, network="none")
            together = await rig.submit("sh", "-c", look, isolation="sandbox")
            await rig.ended(together)
            await rig.ended(alone)
            seen = (await rig.files.log_end(alone)).splitlines()
            assert seen[0] == b"shared"
            assert seen[-1] == b"3"  # two lines of headings, and the loopback of its own
            assert sum(b"No such file" in line for line in seen) == 2
            assert int((await rig.files.log_end(together)).split()[-1]) >= 3

    play(tmp_path, scene)


def test_a_worker_without_the_mode_it_shall_use_does_not_start(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        with pytest.raises(InvalidInput, match="expected isolation to be"):
            async with rig.agent(isolation="cage"):
                pass

    play(tmp_path, scene)


def test_a_sandbox_is_the_default_where_it_works(tmp_path: Path) -> None:
    why = missing_reason("bwrap")
    if why is not None:
        pytest.skip(why)

    async def scene(rig: Rig) -> None:
        async with rig.agent(isolation="auto") as agent:
            assert agent.machine.isolation.default == "sandbox", agent.machine.isolation.lacking
            assert agent.machine.metadata[OFFERED][:3] == ["process", "user", "sandbox"]

    play(tmp_path, scene)


def test_without_bubblewrap_the_default_is_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def scene(rig: Rig) -> None:
        async with rig.agent(isolation="auto") as agent:
            assert agent.machine.isolation.default == "process"
            why = agent.machine.isolation.lacking["sandbox"]
            assert why == "bubblewrap is not installed (no bwrap on the PATH)"

    play(tmp_path, scene)
