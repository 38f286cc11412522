"""Windlass in a Django project: settings, commands, transactional submit, a backend for tasks.

`settings.py`:

```python
INSTALLED_APPS = [..., "windlass.contrib.django"]
WINDLASS = {"SERVER": "http://127.0.0.1:7420", "TOKEN": "...", "DATABASE": "default"}
```

Programs import what `__all__` lists. Nothing of Django is loaded before it is used.
"""

from windlass.contrib.django.submitting import get_client, submit_in, submit_many_in

__all__ = ["get_client", "submit_in", "submit_many_in"]
