"""The whole system under one seed: production engine, loops and stores, virtual time.

Everything random happens at the ports (network, store, processes, people), drawn from
one generator, so a seed is a complete description of a run.
"""

from windlass.simulator.run.simulation import Result, simulate

__all__ = ["Result", "simulate"]
