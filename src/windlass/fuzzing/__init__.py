"""Commit fuzzing: which commits are built, fuzzed and from which tests; state in a bucket."""
