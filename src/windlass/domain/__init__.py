"""The rules: values in, values out. No I/O, no clock, no logging, no waiting."""
