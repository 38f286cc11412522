"""What a fuzzer does with each combination of a matrix: its run, its findings, its share of time.

Only the roles import it. It takes no leases and counts no runs.
"""
