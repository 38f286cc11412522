"""The checker: replays the log, compares it with the state, checks the safety invariants.

The simulator, the chaos tests and `windlass verify` use it. It only reads.
"""

from windlass.engine.verify.check import judge, verify
from windlass.engine.verify.past import Violation

__all__ = ["Violation", "judge", "verify"]
