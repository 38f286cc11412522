"""The settings of the project; its database is that of the queue."""

import os
from urllib.parse import urlsplit

_database = urlsplit(os.environ["DATABASE_URL"])

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "only for this example")
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "examples.django_app.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "examples.django_app.shop",
    "django_tasks",
    "windlass.contrib.django",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _database.path[1:],
        "USER": _database.username,
        "HOST": _database.hostname,
        "PORT": _database.port,
    }
}
WINDLASS = {"DATABASE": "default"}  # the server is found by WINDLASS_SERVER and WINDLASS_TOKEN
TASKS = {
    "default": {
        "BACKEND": "windlass.contrib.django.tasks.WindlassBackend",
        "QUEUES": [],
        "OPTIONS": {"job": {"retries": 2}},
    }
}
