"""The rules of Windlass as pure functions over values and `now`.

Everything may import it. It imports nothing else of Windlass, and does no I/O, reads no clock,
writes no log and never waits.
"""
