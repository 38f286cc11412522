"""Reasons for waiting, the smallest change that helps, forecasts, and causes of waiting time.

Pure functions. Engine explain reads what they need.
"""
