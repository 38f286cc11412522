"""The example applications, driven over HTTP."""
