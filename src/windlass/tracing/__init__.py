"""OpenTelemetry traces, if the extra `otel` is installed and an endpoint is configured.

Programs without traces load nothing of OpenTelemetry. Any package above
`domain` may import this one.
"""
