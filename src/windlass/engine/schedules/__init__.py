"""Templates, schedules and their runs, and reactions to the end of a workflow.

Stands above the engine object. Each slot of a schedule starts at most one run.
"""
