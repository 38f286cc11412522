"""Roles that know who runs jobs: workers, queues, placement, pools and access, with their SQL.

Only this store imports them; a role reads and writes, and decides nothing.
"""
