var x 0 9
var y 0 9
assert x + y = 12
assert x > y
