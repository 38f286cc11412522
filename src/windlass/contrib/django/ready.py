"""Sets Django up when it is imported, so that tasks can use models: `--import` it in workers."""

import django
from django.apps import apps

if not apps.ready:
    django.setup()
