"""A server whose disk is full: the work is kept for a while, then handed back without blame."""

from pathlib import Path
from typing import Any

import pytest

from tests.worker.rig import Rig, play, state_of
from windlass.blobs.faults import from_disk
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.ports.gateway import Holder
from windlass.worker.agent.direct import DirectGateway
from windlass.worker.attempt.files import files


class FullDisk:
    """Passes everything on, but takes no artifact the first `times`."""

    def __init__(self, inner: DirectGateway, times: int) -> None:
        self._inner = inner
        self.left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def put_artifact(self, holder: Holder, *about: Any) -> None:
        if self.left:
            self.left -= 1
            raise from_disk(OSError(28, "No space left on device"), "/blobs")
        await self._inner.put_artifact(holder, *about)


@pytest.mark.parametrize(("times", "attempts"), [(2, 1), (7, 3)])
def test_an_upload_is_tried_again_and_then_the_attempt_is_handed_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, attempts: int
) -> None:
    monkeypatch.setattr(files, "PAUSES_MS", (1, 1))

    async def scene(rig: Rig) -> None:
        gateway = FullDisk(rig.gateway, times)
        async with rig.agent(gateway=gateway):
            job = await rig.submit("sh", "-c", "echo x > out", artifacts=["out"], retries=0)
            record = await rig.ended(job)
            assert (state_of(record), record.facts.attempt) == ("completed", attempts)
            assert record.facts.failed == 0
            for closed in await rig.attempts(job):
                assert FAILURE_BY_CODE[closed.failure] == "resource"
                assert "the disk that holds /blobs is full" in (closed.message or "")

    play(tmp_path, scene)
