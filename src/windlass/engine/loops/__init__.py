"""The maintenance loops; `ticker.py` runs them.

Each has `run_once(now)`, which returns a report, and is safe to run on every server at once.
"""
