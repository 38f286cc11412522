"""Roles that keep and show records: files, schedules, statistics, retention, views, snapshots.

Only this store imports them; a role reads and writes, and decides nothing.
"""
