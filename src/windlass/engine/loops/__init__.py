"""The maintenance loops, one file each; `running/` runs them.

Each has `run_once(now)`, which returns a report, and is safe to run on every server at once.
"""
