"""Stores: SQLite in a file or in memory, and PostgreSQL, behind one `Store` (`store.py`).

They read and write, and the engine decides: it knows `store.py` and the roles of a transaction in
`sql/`, and no database. Only `assembly` and commands for databases import `sqlite/` and
`postgres/`. What the databases share beside the roles (codes, job lists) is in the modules here.
"""
