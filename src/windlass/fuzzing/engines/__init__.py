"""Engines: the programs that look for inputs which break a solver."""
