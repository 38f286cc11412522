"""Tests of sign-in with a real identity provider."""
