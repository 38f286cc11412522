"""The whole system under one seed: production engine, loops and stores, virtual time.

Everything random happens at the ports (network, store, processes, people) and comes from one
generator, so a seed describes a run completely.

`scenario.py` draws a scenario from a seed, and `simulation.py` runs it. Servers run the production
engine and agents the production worker; only what is below their ports is simulated. The world
around them (virtual loop, network, stores) must not know them, must not read a real clock, and must
draw every number from the seed.
"""

from windlass.simulator.simulation import Result, simulate

__all__ = ["Result", "simulate"]
