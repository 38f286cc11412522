"""The command line: commands and their output."""
