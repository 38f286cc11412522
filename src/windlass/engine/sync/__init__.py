"""One worker sync: reports, claims, lookups in arguments, and the fast path in the database.

Builds on attempts, claim, submit and fleet. Only the engine itself imports it.
"""
