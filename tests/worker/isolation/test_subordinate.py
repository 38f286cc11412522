"""Jobs of a worker that is not root, each with a subordinate uid of its own."""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.debian import missing_reason
from tests.support.unprivileged import SUBORDINATE, SUBORDINATES, UID, become_user
from tests.worker.rig import SHORT, Rig, Witness, play, state_of
from windlass.worker.isolation import job_users
from windlass.worker.isolation.job_users import NoSubordinateUids, Share, find_share

PLACE = Path(f"/var/tmp/windlass-{UID}")
# Files that nobody but their owner can list, read or remove.
PRIVATE = "mkdir -m 700 d; echo kept > d/f; chmod 600 d/f; id -u; id -g; pwd"


class User:
    """A user with subordinate uids, who exists only in a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._prefix = become_user(folder, folder)
        self.env = {
            "PATH": f"{os.environ['PATH']}:/usr/sbin", "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }  # fmt: skip

    def command(self, argv: Sequence[str]) -> list[str]:
        return [*self._prefix, *argv]


@pytest.fixture
def user() -> Iterator[User]:
    """Such a user, with a folder that others can pass."""
    if os.geteuid() != 0:
        pytest.skip("only root can start programs as somebody else")
    if (why := missing_reason("newuidmap")) is not None:
        pytest.skip(why)
    with tempfile.TemporaryDirectory(prefix="windlass-") as folder:
        Path(folder).chmod(0o755)
        yield User(Path(folder))


def test_each_job_has_a_uid_and_its_files_come_back_to_the_worker(user: User) -> None:
    async def scene(rig: Rig) -> None:
        rig.bridge.path.chmod(0o777)
        first = await rig.submit("sh", "-c", "echo input > given", artifacts=["given"])
        more = {"after": [first], "inputs": [{"job": first, "artifact": "given"}]}
        lines = []
        async with rig.agent_process(user=user, environ={"WINDLASS_ISOLATION": "user"}, slots=2):
            script = f"{PRIVATE}; cat given"
            jobs = [await rig.submit("sh", "-c", script, artifacts=["d/*"], **more) for _ in "ab"]
            for job in jobs:
                ended = await rig.ended(job)
                assert state_of(ended) == "completed", ended.message
                assert rig.files.artifacts[job, "d/f"] == b"kept\n"
                lines.append((await rig.files.log_end(job)).split())
            killed = await rig.submit("sh", "-c", "trap '' TERM; (setsid sleep 99 &); kill -9 $$")
            await rig.engine.jobs.cancel([killed])
            await rig.ended(killed)
            scratch = Path(os.fsdecode(lines[0][2])).parent
            while any(any(folder.iterdir()) for folder in scratch.iterdir()):
                await rig.clock.sleep_ms(10)
        uids = {int(words[0]) for words in lines}
        assert uids <= set(range(SUBORDINATE, SUBORDINATE + SUBORDINATES))
        assert len({words[2] for words in lines}) == 2
        assert [words[0] == words[1] for words in lines] == [True, True]
        assert {words[3] for words in lines} == {b"input"}
        assert scratch.is_relative_to(PLACE)

    play(user.folder, scene)


def test_a_worker_that_was_killed_leaves_neither_processes_nor_files(user: User) -> None:
    environ = {"WINDLASS_ISOLATION": "user"}

    async def scene(rig: Rig) -> None:
        rig.bridge.path.chmod(0o777)
        job = await rig.submit("sh", "-c", f"{PRIVATE}; echo $$; exec sleep 999")
        async with rig.agent_process(user=user, environ=environ) as agent:
            words = await rig.files.log_line(job, lines=4)
            witness, folder = Witness(int(words[3])), Path(words[2])
            assert (folder / "d/f").stat().st_uid == int(words[0])
            agent.signal(signal.SIGKILL)
            await witness.gone()
        await rig.engine.jobs.cancel([job])  # Else it would make its files again.
        async with rig.agent_process(user=user, environ=environ):
            while (folder / "d").exists() or list(folder.parent.parent.glob("scratch.old*")):
                await rig.clock.sleep_ms(10)

    play(user.folder, scene, SHORT)


@pytest.mark.parametrize(
    ("uids", "gids", "found"),
    [
        ("other:1:5\n{}:100:50\n", "{}:100:50\n", Share(100, 50)),
        ("{}:100:50\n", "{}:120:50\n", Share(120, 30)),
        ("{}:100:50\n", "{}:200:50\n", "differ"),
        ("{}:x:50\n{}:100:0\n", "{}:1:5\n", "has no entry for"),
        ("", "", "has no entry for"),
    ],
)
def test_only_ids_that_are_set_aside_for_the_user_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uids: str, gids: str, found: Share | str
) -> None:
    files = tmp_path / "subuid", tmp_path / "subgid"
    for file, text in zip(files, (uids, gids), strict=True):
        file.write_text(text.replace("{}", str(os.geteuid())))
    monkeypatch.setattr(job_users, "FILES", files)
    monkeypatch.setattr(job_users, "PROGRAMS", ("true",))
    if isinstance(found, Share):
        assert find_share() == found
    else:
        with pytest.raises(NoSubordinateUids, match=found):
            find_share()
