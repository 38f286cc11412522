"""Tests of what `/metrics` shows."""
