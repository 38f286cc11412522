"""OpenTelemetry traces, if the extra `otel` is installed and an endpoint is configured.

Programs that do not use them load nothing of OpenTelemetry and pay nothing. Any package above
`domain` may import this one.
"""
