"""The statements of queries.sql, loaded once."""

from windlass.store.sql import load_queries

QUERIES = load_queries("windlass.store.sqlite", "queries.sql")
