"""What runs of the fuzzer did over time: stored within limits, and summed up for people.

It knows only the numbers of engines and findings.
"""
