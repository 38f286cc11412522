"""A small Django project with Windlass: `python -m examples.django_app runserver`."""
