"""Small pools and work for the tests of sizing."""

from collections.abc import Iterable

from windlass.domain.pools.pools import Pool
from windlass.domain.pools.scale import Target

NOW = 1_000_000
SECOND = 1_000


def pool(**fields: object) -> Pool:
    given: dict[str, object] = {"name": "p", "target_latency_ms": 5_000, "max_workers": 1_000}
    return Pool(**{**given, **fields})  # type: ignore[arg-type]


def target(
    queued: int,
    each_ms: int,
    hosts: Iterable[int] = (),
    left_ms: int = 0,
    running: int = 0,
    room: int = 1,
) -> Target:
    """Work for a pool `p`; each host takes one of its jobs at once, and a worker of `p` `room`."""
    return Target(
        "jobs", queued, queued * each_ms, running, left_ms, dict.fromkeys(hosts, 1), {"p": room}
    )
