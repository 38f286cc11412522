"""Functions as tasks: `@windlass.task` makes one, `windlass.current()` is the job inside it.

Workers run only marked functions, which they find by import path: only the function's name is sent.
Processes of jobs load this package and little else.
"""
