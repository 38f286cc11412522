"""The engine: commands, group commit, wake-ups, and the loops."""
