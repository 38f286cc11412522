"""Templates, schedules and their runs, and reactions to the end of a workflow.

A service on top of the engine. Each slot of a schedule starts at most one run.
"""
