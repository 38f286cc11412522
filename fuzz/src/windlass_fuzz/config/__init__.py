"""The solver file, and the fleet schedules and GitHub workflows generated from it.

Every package that needs a solver's settings imports it. It must not do any work itself.
"""
