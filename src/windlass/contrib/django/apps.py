"""The Django application `windlass.contrib.django`."""

from django.apps import AppConfig


class WindlassConfig(AppConfig):
    """Has no models: jobs live in tables of Windlass."""

    name = "windlass.contrib.django"
    label = "windlass"
    verbose_name = "Windlass"
