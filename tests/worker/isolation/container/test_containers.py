"""Jobs in containers of a real rootless engine, run by an agent of an ordinary user."""

import tempfile
from pathlib import Path

from tests.support.containers import IMAGE, RootlessPodman
from tests.worker.rig import Rig, play, state_of

ENGINE = {"WINDLASS_CONTAINER_ENGINE": "podman"}


def test_hello(podman: RootlessPodman) -> None:
    folder = podman.give(Path(tempfile.mkdtemp(dir=podman.folder)))

    async def scene(rig: Rig) -> None:
        async with rig.agent_process(user=podman, environ=ENGINE, slots=4):
            job = await rig.submit(
                "sh", "-c", "echo hi; id; env; pwd; ls -la / . /run", image=IMAGE, network="none"
            )
            record = await rig.ended(job)
            print(state_of(record), record)
            print(rig.files.logs[job, 1].decode())
            assert podman.containers() == []

    play(folder, scene)
