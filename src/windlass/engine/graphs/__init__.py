"""Graphs of workflows in memory: read in small steps, laid out in threads, kept for a while.

Built on `windlass.domain.graphs`; used by `windlass.api.graphs`. Reads only, and decides nothing.
"""
