"""Graphs of workflows in memory: read in small steps, laid out in threads, kept for a while.

Built on `windlass.domain.graphs`; `windlass.operations.graphs` uses it. It only reads, and decides
nothing.
"""
