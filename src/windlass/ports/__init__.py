"""Protocols between the engine and the outside: blobs, clock, providers, executors.

Implementations depend on these, never the other way round. No code here does any I/O.
"""
