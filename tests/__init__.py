"""The tests of Windlass. `tests.support` holds what several of them, and the benchmarks, share."""
