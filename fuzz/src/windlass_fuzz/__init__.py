"""Fuzzes the commits of a solver: finds them, builds and fuzzes them, reports bugs.

A plug-in of Windlass: `plugin.py` declares what it adds. It may import all of Windlass; Windlass
imports nothing of it.
"""
