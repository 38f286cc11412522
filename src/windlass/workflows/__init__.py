"""Workflows as people describe them: files, parameters, matrices, workflows inside workflows.

A description becomes a `NewWorkflow` and the jobs for it (`expand` for one that came as data,
`expand_file` for a file). Nothing here talks to a server or a store, and nothing that a
description says is executed.
"""

from windlass.workflows.expansion import Expansion, expand, expand_file

__all__ = ["Expansion", "expand", "expand_file"]
