"""The roles (manager, builder, fuzzer, triager, coverage mapper), their steps and dry-run plans.

Only the commands in `windlass_fuzz.cli` import it. It must not print.
"""
