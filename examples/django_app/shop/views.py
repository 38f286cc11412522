"""Views that submit in the transaction of the request."""

from django.db import IntegrityError, transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django_tasks import default_task_backend

from examples.django_app.shop.models import Note
from examples.django_app.shop.tasks import measure, note_length
from windlass.contrib.django import get_client, submit_in


@csrf_exempt
def add_note(request: HttpRequest) -> JsonResponse:
    """Saves a note and submits what belongs to it; if it cannot be saved, there is no job."""
    try:
        with transaction.atomic():
            job = submit_in(measure, request.POST["text"])
            note = Note.objects.create(text=request.POST["text"])
            result = note_length.enqueue(note.pk)
    except IntegrityError:
        return JsonResponse({"error": "this note is there already", "job": job.id}, status=409)
    return JsonResponse({"note": note.pk, "job": job.id, "result": result.id}, status=201)


def show_job(_request: HttpRequest, job: int) -> JsonResponse:
    """Waits for the result of a job."""
    return JsonResponse({"result": get_client().job(job).result(timeout=20)})


def show_result(_request: HttpRequest, result: str) -> JsonResponse:
    """Shows how far a task of Django is."""
    found = default_task_backend.get_result(result)
    value = found.return_value if str(found.status) == "SUCCESSFUL" else None
    errors = [error.traceback for error in found.errors]
    return JsonResponse({"status": str(found.status), "value": value, "errors": errors})
