"""What pages about the fleet show: tasks and their forms, histories of workers and pools.

The server's routes import it. It reads, checks what the caller may see, and changes nothing.
"""
