"""Alarms: tells people by webhook and e-mail that a build cannot be fuzzed.

Builders and fuzzers import it. It decides nothing: it sends what they report.
"""
