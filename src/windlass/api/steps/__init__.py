"""Durable steps of running jobs, signals and questions, once for every front end.

`attempt.py` is for workers, `signals.py` for everybody else; it checks what the caller may do.
"""
