"""What the inputs of a commit reach: measured, compared with what was reached before, and shown.

Roles import it, and pass it builds and inputs; it writes reports and records to the bucket.
"""
