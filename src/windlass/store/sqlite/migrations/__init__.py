"""The numbered steps from an empty file to the schema of today; see `migrate.py`."""
