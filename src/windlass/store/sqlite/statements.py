"""The statements of the .sql files, loaded once."""

from windlass.store.sql import load_queries

QUERIES = load_queries(
    "windlass.store.sqlite",
    "queries.sql",
    "schedules.sql",
    "statistics.sql",
    "explain.sql",
    "placement.sql",
    "pools.sql",
)
