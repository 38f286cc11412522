"""Commit fuzzing: finds new commits of a solver, builds and fuzzes them, and reports bugs.

The steps share no memory, only files in a bucket. `windlass.cli.fuzz` runs them; nothing
else may import this package.
"""
