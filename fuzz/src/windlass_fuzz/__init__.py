"""Fuzzes the commits of a solver: finds them, builds and fuzzes them, reports bugs.

A plug-in of Windlass: `plugin.py` declares what it adds. The steps share no memory, only files in a
bucket; `windlass_fuzz.cli` runs them. It may import all of Windlass, which imports nothing of it.
"""
