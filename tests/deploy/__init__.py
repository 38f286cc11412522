"""Tests of `deploy/`: the alert rules and the dashboard, with Debian's Prometheus."""
