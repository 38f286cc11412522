"""The command line: `app` is the program, `commands` does the work.

Nothing outside imports this package except `windlass.__main__`. A module here loads only what its
own commands need, because every command pays for its imports.
"""
