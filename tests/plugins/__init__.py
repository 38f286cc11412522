"""Tests of plug-ins: what they declare, what they add, and what broken ones must not stop."""
