"""Tokens, enrolment codes, roles, and which jobs may use which secrets.

Decides who may do what. The server checks every request here.
"""
