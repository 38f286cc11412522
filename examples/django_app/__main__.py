"""`manage.py` of the project."""

import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "examples.django_app.settings")
execute_from_command_line(["python -m examples.django_app", *sys.argv[1:]])
