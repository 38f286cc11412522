"""Shares rigs on every store, scripted workers, clouds and schedules between the engine's tests."""
