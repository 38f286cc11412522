"""Durable steps: stores what functions have done, and continues jobs whose waits are over.

Commands and loops import this package. A job is suspended by its worker's report
(`engine/attempts/reports.py`), not here.
"""
