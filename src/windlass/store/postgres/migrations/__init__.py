"""Steps from version 1 of the PostgreSQL schema on, `0002_name.sql` and so forth.

Empty before the first release that changes the schema. Only `migrate.py` reads them.
"""
