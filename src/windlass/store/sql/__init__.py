"""The roles of a transaction (`transaction.py`), written once for SQLite and PostgreSQL.

Each role is a module over a `Session`, which runs statements by name. Its statements stand
beside it: `pools.sql` is for both, `pools.sqlite.sql` and `pools.postgres.sql` for one of them.
What a database does in a way of its own, in Python, is abstract here and stands in its package.

A role has two classes: `JobsRead` for reads that lock nothing, `Jobs` for everything. All methods
are `async` so that one engine drives every store, but on SQLite they never suspend (see
docs/decisions/001).
"""
