"""The engine's behaviour, the same on every store."""
