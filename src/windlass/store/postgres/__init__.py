"""The PostgreSQL store: many engines on one database, set-based statements, real locks."""
