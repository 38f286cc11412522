"""The whole system under one seed: production engine, loops and stores, virtual time.

Everything random happens at the ports (network, store, processes, people), drawn from
one generator, so a seed is a complete description of a run.

`scenario.py` is what a seed draws, and `simulation.py` runs it. Servers run the production engine
and agents the production worker; only what lies below their ports is simulated here. The world in
which they move (virtual loop, network, stores) must not know them, and must not read a real clock
or draw a number from anything but the seed.
"""

from windlass.simulator.simulation import Result, simulate

__all__ = ["Result", "simulate"]
