"""Workflows as people describe them: files, parameters, matrices, nested workflows.

A description becomes a `NewWorkflow` and its jobs (`expand` for data, `expand_file` for a file).
Nothing here talks to a server or a store, and nothing in a description is executed.
"""

from windlass.workflows.expansion import Expansion, expand, expand_file

__all__ = ["Expansion", "expand", "expand_file"]
