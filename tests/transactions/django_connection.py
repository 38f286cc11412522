"""A connection of Django to the database of a test."""

from functools import partial
from typing import Any
from urllib.parse import urlsplit

import django
from django.apps import apps
from django.conf import settings
from django.db import connections, transaction


def connection_to(dsn: str) -> tuple[Any, Any]:
    """Returns a connection, and what makes a transaction on it."""
    if not settings.configured:
        settings.configure(DATABASES={"default": options(dsn)}, INSTALLED_APPS=[])
    if not apps.ready:
        django.setup()
    name = urlsplit(dsn).path[1:]
    whole = connections.configure_settings({"default": {}, name: options(dsn)})
    connections.databases[name] = whole[name]
    return connections[name], partial(transaction.atomic, using=name)


def options(dsn: str) -> dict[str, Any]:
    parts = urlsplit(dsn)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:],
        "USER": parts.username,
        "HOST": parts.hostname,
        "PORT": parts.port,
    }
