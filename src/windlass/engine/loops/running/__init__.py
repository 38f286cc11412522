"""Runs the maintenance loops: the ticker of one process, and which process runs them.

The assembly imports it. It knows no single loop.
"""
