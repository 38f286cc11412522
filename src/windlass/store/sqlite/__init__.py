"""The embedded store: one SQLite file, one writer on the loop's own thread."""
