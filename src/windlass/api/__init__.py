"""Turns requests into engine calls and engine records into answers, once for every front end.

The server and the embedded client import this package. It checks what the caller may see and
do, knows no HTTP, and never imports the web server.
"""
