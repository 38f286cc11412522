"""Roles that move jobs: their rows, places, leases, limits, workflows and the event log.

Imported by `transaction.py` and by stores. A role knows no other role.
"""
