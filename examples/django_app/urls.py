"""The addresses of the project."""

from django.urls import path

from examples.django_app.shop import views

urlpatterns = [
    path("notes", views.add_note),
    path("jobs/<int:job>", views.show_job),
    path("results/<str:result>", views.show_result),
]
