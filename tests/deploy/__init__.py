"""Tests of what `windlass init farm` writes: services, load balancer, alerts, dashboard."""
