"""Tests of OpenTelemetry traces."""
