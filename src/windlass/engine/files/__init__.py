"""Logs, artifacts and names: fenced writes, reads, following a log, and removing orphaned files.

Stands above the engine object. Bytes go to the blob store; rows go through the engine.
"""
