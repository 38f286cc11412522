"""Builds worker agents: over HTTP, beside a store, and inside a user's program."""

import os
import sys

from windlass.api.children import Children
from windlass.client.gateway import HttpGateway, WorkerToken
from windlass.client.transport import Transport
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.engine.engine import Engine
from windlass.engine.files.files import Files
from windlass.executors import add_named, load_executors
from windlass.executors.python.executor import PythonExecutor
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.direct import DirectGateway
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.agent.state import StateDirectory


def http_agent(transport: Transport, options: WorkerOptions) -> Agent:
    """Returns an agent that talks to a server; the caller closes the transport."""
    executors = load_executors(imports=options.imports, allowed=options.allowed_imports)
    state = StateDirectory(options.state)
    gateway = HttpGateway(transport, _own_token(state, options.keeps_token))
    return Agent(gateway, options, executors, RealClock(), RealChance(), state)


def _own_token(state: StateDirectory, kept: bool) -> WorkerToken:
    secret = RealSecrets().secret
    if not kept:
        return WorkerToken(secret)
    memory = state.memory
    return WorkerToken(secret, memory.token, memory.accepted, state.keep_token)


def direct_agent(engine: Engine, files: Files, options: WorkerOptions) -> Agent:
    """Returns an agent that uses the engine directly, without a server."""
    gateway = DirectGateway(engine, files, submit=Children(engine).submit)
    executors = load_executors(imports=options.imports, allowed=options.allowed_imports)
    return Agent(gateway, options, executors, RealClock(), RealChance())


def own_agent(engine: Engine, files: Files, options: WorkerOptions) -> Agent:
    """Returns an agent inside a user's program; its functions import what the program can."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    executors = load_executors()
    executors["python"] = PythonExecutor(env={"PYTHONPATH": path})
    add_named(executors)
    return Agent(
        DirectGateway(engine, files, submit=Children(engine).submit),
        options,
        executors,
        RealClock(),
        RealChance(),
    )
