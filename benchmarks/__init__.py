"""Windlass and its peers on the same work."""
