"""A job as it is described and validated, its dependency graph and inherited priority.

Built on lifecycle and matching. It is free of stores and clocks like all of the domain.
"""
