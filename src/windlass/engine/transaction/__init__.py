"""The working set of one transaction, and how calls are grouped into transactions.

Holds the unit of work, its effects after the commit, the group commit, and the engine's caches.
Every other part of the engine builds on it; it imports none of them.
"""
