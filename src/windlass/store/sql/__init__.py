"""The roles of a transaction (`transaction.py`), written once for SQLite and PostgreSQL.

Each role is a module over a `Session`, which runs statements by name. Its statements are beside it:
`pools.sql` is for both, `pools.sqlite.sql` and `pools.postgres.sql` for one of them. Methods that
only run a statement are declared (`methods.py`, docs/decisions/057). Where Python
code differs between databases, the method is abstract here and implemented in their packages.

The database refuses writes and locks in a transaction that only reads. All methods are `async` so
that one engine drives every store, but on SQLite they never suspend (see docs/decisions/001).
"""
