"""Roles that move jobs: rows of jobs, places, leases, limits, workflows and the event log.

Only this store imports them; a role reads and writes, and decides nothing.
"""
