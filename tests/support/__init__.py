"""What tests and benchmarks share: a real PostgreSQL and a way to run coroutines.

Only this folder may read the wall clock or sleep, because it talks to real processes.
"""
