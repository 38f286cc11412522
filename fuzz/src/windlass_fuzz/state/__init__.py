"""The shared state of a pipeline: state files, leases, and the rules that change them.

Roles, findings and builds import it. It must not start programs or read repositories.
"""
