"""Roles that move jobs, with their SQL: places, leases, limits, workflows and the event log too.

Only this store imports them; a role reads and writes, and decides nothing.
"""
