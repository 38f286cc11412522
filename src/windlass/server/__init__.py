"""The HTTP server: parse, call a command, render. It decides nothing."""
