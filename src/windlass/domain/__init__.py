"""The rules: values in, values out. No I/O, no clock, no logging, no waiting.

Every other package may import it; it imports none of them.
"""
