"""Workflows as they are described."""
