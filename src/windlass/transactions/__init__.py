"""Submitting jobs in a transaction of the user's own: they exist if and only if it commits.

`windlass` exports what users call; tasks and `contrib` import from here. It writes to the inbox of
the database and to nothing else, and it loads no database driver: it is given a connection.
"""
