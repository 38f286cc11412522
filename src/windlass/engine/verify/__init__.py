"""The checker: replays the log, compares it with the state, proves the safety invariants.

It serves the simulator, the chaos tests and `windlass verify`. It only reads.
"""

from windlass.engine.verify.check import judge, verify
from windlass.engine.verify.findings import Violation

__all__ = ["Violation", "judge", "verify"]
