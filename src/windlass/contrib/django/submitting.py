"""The settings, a client for views, and submitting jobs in Django's own transactions."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.values.conversion import convert
from windlass.front import Client, get_test_client
from windlass.messages.jobs import NewWorkflow
from windlass.transactions import submitting
from windlass.transactions.submitting import TransactionJob

NAME: Final = "WINDLASS"


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """`SERVER` and `TOKEN` default to those of `windlass.Client()`; `DATABASE` is the queue's.
    `TIMEOUT` limits a submission. If no server accepts it in that time, it waits in the folder
    `SPOOL`, if set.
    """

    server: str | None = None
    token: str | None = None
    timeout: float | str | None = None
    spool: str | None = None
    database: str = "default"  # which of Django's connections is to the queue's database


def read_options() -> Options:
    """Returns the settings; raises `InvalidInput` for an unknown one."""
    from django.conf import settings

    given: dict[str, Any] = getattr(settings, NAME, {})
    return convert(given, Options, f"settings.{NAME}")


def submit_in(task: Any, /, *args: Any, **kwargs: Any) -> TransactionJob:
    """Submits a job in the transaction of Django's connection (`transaction.atomic`).

    The job exists if and only if that commits: no `transaction.on_commit` is needed, and none is
    lost if the process dies after the commit. The connection is that of `WINDLASS["DATABASE"]`.
    """
    return submitting.submit_in(_connection(), task, *args, **kwargs)


def submit_many_in(
    jobs: Sequence[JobSpec], workflow: str | NewWorkflow | None = None
) -> list[TransactionJob]:
    """Does the same for many jobs, or for a workflow."""
    return submitting.submit_many_in(_connection(), jobs, workflow)


def get_client() -> Client:
    """Returns the client of this process, for results and for queues in other databases.

    In a test with the fixture `windlass`, or with `WindlassTestMixin`, it is that of the test.
    """
    return get_test_client() or _own_client()


@cache
def _own_client() -> Client:
    options = read_options()
    return Client(
        options.server, options.token, timeout=options.timeout, spool=options.spool,
        on_unavailable="spool" if options.spool else "raise",
    )  # fmt: skip


def _connection() -> Any:
    from django.db import connections

    return connections[read_options().database]
