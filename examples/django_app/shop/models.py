"""The tables of the application."""

from django.db import models


class Note(models.Model):
    """A text, and how long it is once a job has counted."""

    text: "models.CharField[str, str]" = models.CharField(max_length=200, unique=True)
    length: "models.IntegerField[int | None, int | None]" = models.IntegerField(null=True)

    class Meta:
        app_label = "shop"
