"""Calls of operations over the engine of a rig, for those that need nothing else."""

from types import SimpleNamespace
from typing import Any

from tests.engine.support.rig import Rig
from windlass.domain.access.rights import Identity
from windlass.operations.dispatch.call import Call
from windlass.operations.queues import LiveDepths


def call_of(rig: Rig, who: Identity) -> Call:
    """Returns a call by this caller."""
    services: Any = SimpleNamespace(engine=rig.engine, depths=LiveDepths(rig.engine.catalog))
    return Call(services, who)
