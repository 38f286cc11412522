"""The store in this process's memory, for tests and simulations; a restart loses everything.

`store.py` opens it. It imports no other store.
"""
