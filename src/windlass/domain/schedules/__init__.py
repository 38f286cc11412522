"""Cron lines, schedules and their slots, and the rules for webhooks.

Imports values and lifecycle only.
"""
