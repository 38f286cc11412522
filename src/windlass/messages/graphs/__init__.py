"""Messages about the graph, the progress and the timeline of a workflow, version 1.

Used by `windlass.operations.graphs` and the routes; imports nothing of the engine.
"""
