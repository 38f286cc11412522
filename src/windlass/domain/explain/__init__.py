"""Why a job waits, the smallest change that helps, forecasts, and causes of waiting time.

Pure functions. `engine/explain` reads their input from the store.
"""
