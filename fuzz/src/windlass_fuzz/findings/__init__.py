"""Findings: grouped, reproduced, minimised, bisected, stored, and reported.

Only roles and the commands import it. It must not choose commits or hold leases.
"""
