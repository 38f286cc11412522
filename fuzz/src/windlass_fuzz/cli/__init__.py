"""The commands of `windlass fuzz`: one file per command group, and their output.

Windlass loads it when a fuzz command runs. It must not
contain pipeline logic; that belongs in `windlass_fuzz`.
"""
