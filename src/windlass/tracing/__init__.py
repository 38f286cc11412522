"""OpenTelemetry traces, if the extra `otel` is installed and an endpoint is configured.

Whoever does not use them loads nothing of OpenTelemetry and pays nothing. Any package above
`domain` may import this one.
"""
