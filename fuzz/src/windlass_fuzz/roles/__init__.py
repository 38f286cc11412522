"""The four roles (manager, builder, fuzzer, coverage mapper), their steps and dry-run plans.

Only the commands in `windlass_fuzz.cli` import it. It must not print.
"""
