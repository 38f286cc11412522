"""The store in one SQLite file, for one server and the embedded clients beside it.

`store.py` opens it; `file_lock.py` decides who holds the file. It imports no other store.
"""
