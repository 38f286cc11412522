"""Builds worker agents that use an engine directly: beside a store, and in a user's program."""

import os
import sys

from windlass.clock import RealChance, RealClock
from windlass.engine.engine import Engine
from windlass.engine.files.files import Files
from windlass.executors.loading import add_named, load_executors
from windlass.executors.python.executor import PythonExecutor
from windlass.ports.executor import Executor
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.direct import DirectGateway
from windlass.worker.agent.options import WorkerOptions


def direct_agent(engine: Engine, files: Files, options: WorkerOptions) -> Agent:
    """Returns an agent that uses the engine directly, without a server."""
    executors = load_executors(
        imports=options.imports, allowed=options.allowed_imports, apps=options.apps
    )
    return _agent(engine, files, options, executors)


def own_agent(
    engine: Engine, files: Files, options: WorkerOptions, python: Executor | None = None
) -> Agent:
    """Returns an agent inside a user's program, whose jobs can import what the program can.

    `python` runs them, instead of processes of the agent.
    """
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    executors = load_executors()
    executors["python"] = python or PythonExecutor(env={"PYTHONPATH": path})
    add_named(executors)
    return _agent(engine, files, options, executors)


def _agent(
    engine: Engine, files: Files, options: WorkerOptions, executors: dict[str, Executor]
) -> Agent:
    gateway = DirectGateway(engine, files)
    return Agent(gateway, options, executors, RealClock(), RealChance())
