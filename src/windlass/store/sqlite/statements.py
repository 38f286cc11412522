"""The statements of the .sql files, loaded once."""

from windlass.store.sql import load_queries

QUERIES = load_queries("windlass.store.sqlite", "core", "fleet", "records")
