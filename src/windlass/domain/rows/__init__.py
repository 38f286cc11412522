"""The records that stores keep, events and their log lines, views and statistics.

Plain data that stores, ports and the engine share.
"""
