"""A function of Windlass and a task of Django."""

from django_tasks import task as django_task

import windlass


@windlass.task
def measure(text: str) -> int:
    """Returns the length of a text."""
    return len(text)


@django_task()
def note_length(number: int) -> int:
    """Writes down how long a note is."""
    from examples.django_app.shop.models import Note

    note = Note.objects.get(pk=number)
    length = len(note.text)
    note.length = length
    note.save()
    return length
