"""The whole system beside its peers: `python -m benchmarks.fleet`."""
