"""The agent process: its options, its state directory, its metadata and how it drives the core.

`assembly` builds it. It may import every other package of the worker; none of them imports it.
"""
