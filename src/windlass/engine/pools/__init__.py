"""Pools: a snapshot of the fleet, sizing steps, reconciling with machines, and cost accounts.

A service on top of the engine. Providers are called by the pools loop, never inside a transaction.
"""
