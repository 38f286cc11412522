"""Roles that keep and show records: files, schedules, statistics, retention, views, snapshots.

Imported by `transaction.py` and by stores. A role knows no other role.
"""
