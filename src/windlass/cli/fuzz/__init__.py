"""The commands of `windlass fuzz`: one file per command group, and their output.

Only the root of the command line imports it, and only when a fuzz command runs. It must not
contain pipeline logic; that belongs in `windlass.fuzzing`.
"""
