"""The store on PostgreSQL, which many servers share.

`store.py` opens it; `functions/` holds what runs inside the database. It imports no other store.
"""
