"""Every parser of text from outside, with the properties that any input must keep.

`make test` tries a few hundred inputs of each with hypothesis, `make fuzz-parsers` many more
with atheris, which looks for new paths through the code. Both use the same table.
"""
