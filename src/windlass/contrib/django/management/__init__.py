"""The commands of `manage.py` that Windlass adds.

Django finds them by their place; nothing else imports them.
"""
