"""Findings: grouped, reproduced, minimised, bisected, stored, reported and filed.

Only roles and the commands import it. It must not choose commits or hold leases.
"""
