"""The same decisions for a fleet that is otherwise: more workers, or another target."""

from msgspec.structs import replace

from windlass.domain.pool_sizing import Fleet, Host


def what_if(fleet: Fleet, workers: int | None = None, target_ms: int | None = None) -> Fleet:
    """The fleet as it would be with so many workers in each pool, or another target latency."""
    if target_ms is not None:
        pools = (
            one._replace(pool=replace(one.pool, target_latency_ms=target_ms)) for one in fleet.pools
        )
        fleet = fleet._replace(pools=tuple(pools))
    return fleet if workers is None else _with_workers(fleet, workers)


def _with_workers(fleet: Fleet, workers: int) -> Fleet:
    """Workers of pools are replaced by as many as are asked for; others stay."""
    names = {one.pool.name for one in fleet.pools}
    kept = [host for host in fleet.hosts if host.pool not in names]
    fresh: list[Host] = []
    for one in fleet.pools:
        first = -1 - len(fresh)
        fresh += [Host(first - n, one.pool.slots, one.pool.name) for n in range(workers)]
    stays = {host.id for host in kept}
    targets = []
    for target in fleet.targets:
        able = target.pools | target.guesses
        ids = {host.id for host in fresh if host.pool in able}
        targets.append(target._replace(hosts=frozenset((target.hosts & stays) | ids)))
    pools = [one._replace(serving=workers, starting=0, leaving=0) for one in fleet.pools]
    return fleet._replace(hosts=(*kept, *fresh), targets=tuple(targets), pools=tuple(pools))
