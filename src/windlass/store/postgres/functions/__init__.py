"""Functions of the database, one in each file: the fast path of submit and sync, in one round trip.

They handle the common case only. In any other case they write nothing and answer NULL, and the
engine runs its normal path. `migrate.py` applies them whenever their text has changed.
"""
