"""Templates, schedules and their runs, and reactions to the end of a workflow.

Built on the engine object. Each slot of a schedule starts at most one run.
"""
