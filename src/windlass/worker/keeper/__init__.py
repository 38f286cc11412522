"""The keeper, a small process that starts and ends the processes of jobs, and its client.

`keeper.py` and the files that it imports (not `client.py` and `kept_process.py`) use only the
standard library, so that it starts fast and stays small. Nothing here knows jobs.
"""
