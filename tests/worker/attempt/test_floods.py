"""A job that floods its log is held back; the agent stays small and its heartbeats go on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import MemoryFiles
from tests.worker.bridge import Bridge
from tests.worker.rig import SHORT, Rig, play, state_of
from windlass.ports.gateway import Holder
from windlass.worker.agent.direct import DirectGateway

MIB = 1024 * 1024
FLOOD = 128 * MIB
# What may wait in the agent is far below; an unbounded one reaches the size of the flood.
GROWTH = 64 * MIB
FUNCTIONS = "tests.executors.functions"

JOBS: dict[str, dict[str, Any]] = {
    "shell": {"task": "shell", "args": {"argv": ["head", "-c", str(FLOOD), "/dev/zero"]}},
    "plain": {"task": "python", "args": {"function": f"{FUNCTIONS}:flood", "args": [FLOOD >> 16]}},
    "async": {
        "task": "python",
        "args": {"function": f"{FUNCTIONS}:flood_async", "args": [FLOOD >> 16]},
    },
}


@pytest.mark.parametrize("kind", JOBS)
def test_a_flood_grows_no_memory_and_stops_no_heartbeat(tmp_path: Path, kind: str) -> None:
    async def scene(rig: Rig) -> None:
        files = Counting()
        gateway = Watched(DirectGateway(rig.engine, files, log_limit=0))
        bridge = Bridge(gateway, tmp_path / "flooded")
        await bridge.start()
        try:
            spec = JOBS[kind]
            async with rig.agent_process(task=spec["task"], bridge=bridge) as agent:
                await gateway.synced.wait()
                before = peak_bytes(agent.process.pid)
                job = await rig.submit(**spec)
                record = await rig.ended(job)
                assert (state_of(record), record.facts.attempt) == ("completed", 1)
                await files.log_end(job)
                assert files.size == FLOOD
                assert peak_bytes(agent.process.pid) - before < GROWTH
            assert gateway.longest_s < SHORT.heartbeat_timeout_ms / 2_000
        finally:
            await bridge.close()

    play(tmp_path, scene, SHORT)


def peak_bytes(pid: int) -> int:
    """The most memory a process has had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


class Counting(MemoryFiles):
    """Keeps nothing of a log but its size."""

    size = 0

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        assert offset == self.size
        self.size += len(data)
        return self.size


class Watched:
    """Notes how long the agent was silent between two syncs."""

    def __init__(self, inner: DirectGateway) -> None:
        self._inner = inner
        self._last = 0.0
        self.longest_s = 0.0
        self.synced = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def sync(self, worker: int, request: Any) -> Any:
        now = asyncio.get_running_loop().time()
        if self._last:
            self.longest_s = max(self.longest_s, now - self._last)
        self._last = now
        self.synced.set()
        return await self._inner.sync(worker, request)
