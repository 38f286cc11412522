"""`windlass fuzz stats`: what fuzzing did over time, by target, engine and commit.

It only reads, and draws in text.
"""
