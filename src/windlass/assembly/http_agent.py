"""Builds the agent of a worker that talks to a server; it needs neither engine nor stores."""

from windlass.client.gateway import HttpGateway, WorkerToken
from windlass.client.transport import Transport
from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.executors.loading import load_executors
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.agent.state import StateDirectory


def http_agent(transport: Transport, options: WorkerOptions) -> Agent:
    """Returns an agent that talks to a server; the caller closes the transport."""
    executors = load_executors(
        imports=options.imports, allowed=options.allowed_imports, apps=options.apps
    )
    state = StateDirectory(options.state)
    gateway = HttpGateway(transport, _own_token(state, options.keeps_token))
    return Agent(gateway, options, executors, RealClock(), RealChance(), state)


def _own_token(state: StateDirectory, kept: bool) -> WorkerToken:
    secret = RealSecrets().secret
    if not kept:
        return WorkerToken(secret)
    memory = state.memory
    return WorkerToken(secret, memory.token, memory.accepted, state.keep_token)
