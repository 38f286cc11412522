"""Logs, artifacts and names: fenced writes, reads, following a log, removing orphaned files.

Built on the engine object. Bytes go to the blob store; rows go through the engine.
"""
