"""The stores: memory, SQLite and PostgreSQL behind the one port `windlass.ports.store`."""
