"""Which code functions run: one version in all processes of a worker, and what is missing.

The executor and its processes use it; it starts no process itself.
"""
