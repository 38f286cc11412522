"""The records that stores keep, events and their log lines, views and statistics.

Plain data. Stores, ports and the engine share these types.
"""
