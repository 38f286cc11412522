"""Logs, artifacts and names: fenced writes, reads, following a log, and removing orphaned files.

A service on top of the engine. Bytes go to the blob store; rows go through the engine.
"""
