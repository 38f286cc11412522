"""Submitting jobs in a transaction of the user's own: they exist if and only if it commits.

`windlass` exports what users call; tasks and `contrib` import from here. It writes only to the
inbox of the database, and it loads no database driver: callers pass a connection.
"""
