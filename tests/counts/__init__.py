"""Counts that do not depend on the machine: statements, rows and round trips."""
