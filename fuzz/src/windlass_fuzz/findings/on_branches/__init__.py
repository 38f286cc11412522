"""What is known about a finding on each of several branches: alive or fixed, and since when.

Roles and the rest of the findings import it. It must not run inputs by itself.
"""
