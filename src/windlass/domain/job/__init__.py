"""A job: its description and validation, its dependency graph and inherited priority.

Built on lifecycle and matching. Like all of the domain, it knows no stores and no clocks.
"""
