"""Graphs, progress, timelines and comparisons of workflows, with the rights of the caller.

Renders what `windlass.engine.graphs` keeps; a workflow that the caller may not see does not exist.
"""
