"""The keeper, a small process that starts and ends the processes of jobs, and its client.

`keeper.py`, `guard.py`, `processes.py`, `cgroups.py` and `record.py` run in that process and import
only the standard library, so that it starts fast and stays small. Nothing here knows jobs.
"""
