"""The stores (memory, SQLite, PostgreSQL) behind the one port `windlass.ports.store`.

Only `wiring` and commands for databases import them. They read and write; the engine decides.
What the three share (named SQL, codes, job lists) is in the modules here.
"""
