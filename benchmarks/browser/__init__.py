"""What a person waits for in a real browser: `make bench-browser`.

Benchmarks may import everything; nothing imports them but tests of their short forms.
"""
