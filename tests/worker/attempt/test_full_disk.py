"""A server whose disk is full: the work is kept for a while, then handed back without blame."""

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.worker.rig import Rig, play, state_of
from windlass.blobs.local import from_disk
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.ports.gateway import Holder
from windlass.worker.agent.direct import DirectGateway
from windlass.worker.attempt import files, log


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


class FullForLogs:
    """Passes everything on, but takes no log after the first bytes, nor its end at first."""

    def __init__(self, inner: DirectGateway) -> None:
        self._inner = inner
        self.refused = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        if offset:
            raise from_disk(OSError(28, "No space left on device"), "/blobs")
        return await self._inner.append_log(holder, offset, data)

    async def end_log(self, holder: Holder, *about: Any) -> None:
        self.refused += 1
        if self.refused < 3:
            raise from_disk(OSError(28, "No space left on device"), "/data")
        await self._inner.end_log(holder, *about)


def test_a_log_that_a_full_disk_cut_ends_and_its_size_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PATIENCE", 3)
    monkeypatch.setattr(log, "RETRY_MS", 1)

    async def scene(rig: Rig) -> None:
        gateway = FullForLogs(rig.gateway)
        ready = tmp_path / "ready"
        line = f"echo first; until test -e {ready}; do sleep 0.01; done; seq 100000; echo end >&2"
        with capture_logs() as logged:
            async with rig.agent(gateway=gateway, isolation="process"):
                job = await rig.submit("sh", "-c", line)
                await rig.files.log_line(job)
                ready.touch()
                assert state_of(await rig.ended(job)) == "completed"
                while (job, 1) not in rig.files.ends:
                    await rig.clock.sleep_ms(10)
        whole = len("first\nend\n") + sum(len(f"{n}\n") for n in range(1, 100_001))
        assert rig.files.ends[job, 1] == (whole, "lost")
        assert gateway.refused == 3
        (lost,) = [entry for entry in logged if entry["event"] == "log_lost"]
        assert (lost["log_level"], lost["job"]) == ("warning", job)
        assert "disk that holds /blobs is full" in lost["reason"]

    play(tmp_path, scene)


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
