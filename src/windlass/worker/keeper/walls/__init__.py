"""What keeps the programs of jobs apart from each other and from Windlass's own files.

`walls.py` decides what a process does before it becomes a program; the others are the system
calls for that. The keeper imports it, so it needs the standard library only.
"""
