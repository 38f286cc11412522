"""Runs Python functions as jobs, in processes that are reused.

`child.py` and `child_loop.py` run in those processes, the rest in the agent. The agent imports
`executor.py` and `known.py` only. No function ever runs in the agent itself.
"""
