"""Which worker may run which job: clauses, shapes, resources, rates, fair shares, claim planning.

Claims and explanations use the same functions from here.
"""
