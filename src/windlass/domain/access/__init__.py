"""Tokens and enrolment codes, roles, and which jobs may name which secrets.

Decides who may do what; the server asks it on every request.
"""
