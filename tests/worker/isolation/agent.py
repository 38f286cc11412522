"""An agent in a process of its own, as `windlass worker` starts it: SOCKET STATE DATA MODE."""

import asyncio
import sys
from pathlib import Path

from tests.worker.bridge import BridgeGateway
from windlass.clock import RealChance, RealClock
from windlass.executors.loading import load_executors
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.agent.state import StateDirectory
from windlass.worker.keeper.processes import become_private


async def main(socket: str, state: str, data: str, mode: str) -> None:
    become_private()
    place = StateDirectory(Path(state))
    place.keep_token("wl_secret", accepted=True)
    options = WorkerOptions(
        name="w", state=Path(state), slots=2, isolation=mode, hides=(Path(data),),
        container_engine="podman" if mode == "container" else "off",
    )  # fmt: skip
    gateway = BridgeGateway(Path(socket))
    agent = Agent(gateway, options, load_executors(["shell"]), RealClock(), RealChance(), place)
    agent.obey_signals()
    await agent.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
