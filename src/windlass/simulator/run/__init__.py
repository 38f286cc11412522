"""One run: the scenario a seed draws, the faults, and the checks of what came out.

The command and the tests import it.
"""
