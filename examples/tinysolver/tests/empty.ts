var x 0 5
assert x > 5
