"""Bugs that a fuzzer has found: told apart, made small, dated, watched until they are mended."""
