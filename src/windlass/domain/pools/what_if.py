"""Makes the same decisions for a hypothetical fleet: more workers or another target."""

from collections.abc import Container, Sequence

from msgspec.structs import replace

from windlass.domain.pools.scale import Host, Target
from windlass.domain.pools.sizing import Fleet


def what_if(fleet: Fleet, workers: int | None = None, target_ms: int | None = None) -> Fleet:
    """Returns the fleet with this many workers in each pool, or with another target latency."""
    if target_ms is not None:
        pools = (
            one._replace(pool=replace(one.pool, target_latency_ms=target_ms)) for one in fleet.pools
        )
        fleet = fleet._replace(pools=tuple(pools))
    return fleet if workers is None else _with_workers(fleet, workers)


def _with_workers(fleet: Fleet, workers: int) -> Fleet:
    """Replaces the workers of these pools by the given numbers and keeps all others."""
    names = {one.pool.name for one in fleet.pools}
    kept = [host for host in fleet.hosts if host.pool not in names]
    fresh = [Host(-1 - n, one.pool.name, workers) for n, one in enumerate(fleet.pools) if workers]
    stays = {host.id for host in kept}
    targets = [_with_hosts(target, stays, fresh) for target in fleet.targets]
    pools = [one._replace(serving=workers, starting=0, leaving=0) for one in fleet.pools]
    return fleet._replace(hosts=(*kept, *fresh), targets=tuple(targets), pools=tuple(pools))


def _with_hosts(target: Target, stays: Container[int], fresh: Sequence[Host]) -> Target:
    """Assumes that pools which might run the target do so, one job at a time."""
    hosts = {host: room for host, room in target.hosts.items() if host in stays}
    for host in fresh:
        if host.pool in target.pools or host.pool in target.guesses:
            hosts[host.id] = target.pools.get(host.pool, 1)
    return target._replace(hosts=hosts)
