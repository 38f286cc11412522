"""The life of a job: states and transitions, failures, retries, timeouts, rank, deadlines.

Imports values only.
"""
