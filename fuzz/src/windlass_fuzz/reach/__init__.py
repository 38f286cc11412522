"""What the inputs of a commit reach: measured, compared with what was reached before, and shown.

Roles import it. It gets builds and inputs from them, and writes reports and records to the bucket.
"""
