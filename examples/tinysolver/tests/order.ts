var a 0 3
var b 0 3
assert (a < b) & (b < 3)
