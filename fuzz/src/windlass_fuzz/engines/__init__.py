"""Fuzzing engines: the plug-in protocol and the engines that come with Windlass.

Findings and roles import it. An engine must not know about buckets, commits or leases.
"""
