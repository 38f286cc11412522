"""Roles that know who runs jobs: workers, queues and shapes, placement, pools, access.

Imported by `transaction.py` and by stores. A role knows no other role.
"""
