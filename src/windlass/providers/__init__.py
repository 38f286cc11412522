"""Providers start and stop the machines of pools; one file per kind.

Each implements `ports/provider.py`. A provider decides nothing about how many machines there are.
"""

from pathlib import Path

from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import InvalidInput
from windlass.plugins import added
from windlass.ports.clock import Clock
from windlass.ports.provider import Provider
from windlass.providers.command import CommandProvider
from windlass.providers.local import LocalProvider
from windlass.providers.slurm import SlurmProvider


def make_provider(pool: Pool, place: Path, clock: Clock) -> Provider:
    """Returns the provider of a pool; `place` is the directory for the state of local workers."""
    if pool.provider == "local":
        return LocalProvider(pool, place, clock)
    if pool.provider == "command":
        return CommandProvider(pool)
    if pool.provider == "slurm":
        return SlurmProvider(pool)
    if ":" in pool.provider:
        return _of_plugin(pool, place, clock)
    try:
        if pool.provider == "ec2":
            from windlass.providers.ec2 import Ec2Provider

            return Ec2Provider(pool)
        from windlass.providers.kubernetes import KubernetesProvider

        return KubernetesProvider(pool)
    except ImportError as error:
        expected = f"installed with `pip install 'windlass[{pool.provider}]'`"
        raise InvalidInput("provider", expected, f"no module {error.name}") from None


def _of_plugin(pool: Pool, place: Path, clock: Clock) -> Provider:
    known = {f"{one.plugin}:{one.name}": one for one in added("providers")}
    if pool.provider not in known:
        there = ", ".join(known) or "none"
        expected = f"a provider of one of this server's plug-ins ({there})"
        raise InvalidInput("provider", expected, pool.provider)
    made: Provider = known[pool.provider].load()(pool, place, clock)
    return made
