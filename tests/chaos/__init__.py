"""Real processes that are killed at random, on a real database."""
