"""The roles of a transaction, written once for SQLite and PostgreSQL.

Each role is a module over a `Session`, which runs statements by name. Its statements stand
beside it: `pools.sql` is for both, `pools.sqlite.sql` and `pools.postgres.sql` for one of them.
What a database does in a way of its own, in Python, is in its package.
"""
