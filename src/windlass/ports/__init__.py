"""Protocols between the engine and the outside: stores, clock, chance."""
