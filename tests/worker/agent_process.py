"""An agent in a process of its own, for tests that kill it: SOCKET STATE NAME SLOTS TASK…"""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.worker.bridge import BridgeGateway
from windlass.clock import RealChance, RealClock
from windlass.executors.loading import load_executors
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.attempt.secrets import load_secrets


async def main(socket: str, state: str, name: str, slots: str, *tasks: str) -> None:
    told = json.loads(os.environ["WINDLASS_TOLD"])
    options = WorkerOptions(
        name=name, state=Path(state), slots=int(slots), metadata=told,
        container_engine=os.environ.get("WINDLASS_CONTAINER_ENGINE", "off"),
        secrets=load_secrets(os.environ), isolation=os.environ.get("WINDLASS_ISOLATION", "process"),
    )  # fmt: skip
    executors = load_executors(tasks)
    gateway = BridgeGateway(Path(socket))
    agent = Agent(gateway, options, executors, RealClock(), RealChance())
    agent.obey_signals()
    await agent.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
