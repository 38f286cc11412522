"""Pools: a snapshot of the fleet, sizing steps, reconciling with machines, and cost accounts.

Stands above the engine object. Providers are called by the pools loop, never inside a transaction.
"""
