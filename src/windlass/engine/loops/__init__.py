"""The maintenance loops: one file each, safe to run on every server at once."""
