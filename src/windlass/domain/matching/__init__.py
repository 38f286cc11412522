"""Decides which worker may run which job: clauses, shapes, resources, rates, fair shares.

Claims and explanations use the same functions from here.
"""
