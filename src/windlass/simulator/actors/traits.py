"""What kind of worker an agent is, and what its processes make of the jobs."""

import random
from typing import Any

import msgspec
from msgspec import Struct

from windlass.simulator.actors.processes import Key
from windlass.wire.sync import Assignment, Finished, Released


class Traits(Struct, frozen=True):
    """What kind of worker it is; rates are probabilities."""

    name: str
    slots: int
    metadata: dict[str, Any]
    prefetch: int = 0  # jobs taken ahead
    declines: float = 0.0
    fails: float = 0.0
    forgets_timeouts: float = 0.0
    dies_with_job: float = 0.0


class Plan(Struct):
    """What a job's arguments ask of a simulated process."""

    ms: int = 1_000
    poison: bool = False


class _Spec(Struct):
    args: Plan | None = None


_spec_decoder = msgspec.json.Decoder(_Spec)


def plan_of(assignment: Assignment) -> Plan:
    """The plan in a job's arguments."""
    return _spec_decoder.decode(assignment.spec).args or Plan()


def draw_outcome(traits: Traits, chance: random.Random) -> str:
    """How a process ends that nothing disturbs."""
    if chance.random() < traits.fails:
        return chance.choice(("execution", "network", "resource", "timeout"))
    return "completed"


def report_of(key: Key, outcome: str) -> Finished | Released:
    """What an agent says of a process that has ended."""
    if outcome == "completed":
        return Finished(*key, result={"ok": True})
    if outcome == "fenced":
        return Released(*key, reason="no server answered")
    if outcome == "canceled":
        return Finished(*key, outcome="canceled")
    if outcome == "timed_out":
        return Finished(*key, outcome="timed_out")
    return Finished(*key, outcome="failed", failure=outcome, message=f"simulated: {outcome}")
