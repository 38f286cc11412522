"""Loops of bare SQL to stand beside the engine: no rules, no objects, only statements."""
