"""What runs of the fuzzer did over time: stored within limits, and summed up for people.

It knows nothing of engines and findings but their numbers.
"""
