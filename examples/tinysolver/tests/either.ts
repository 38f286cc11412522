var x 1 9
assert x - 4 > 2 | x = 1
