"""Rows of `inbox`: jobs that users submitted in transactions of their own."""

from typing import Final, NamedTuple

PROTOCOL: Final = 1  # between libraries and the function that takes submissions
MAX_JOBS: Final = 100_000  # in one submission


class InboxRow(NamedTuple):
    """One submission that was committed by its user and is not among the jobs yet.

    `jobs` are the ids that its jobs will have, ascending in the order of their dependencies.
    """

    id: int
    at: int
    jobs: tuple[int, ...]
    submitted_by: str
    namespaces: tuple[str, ...]  # that its submitter may use; empty: all
    body: bytes  # a `SubmitRequest` as JSON


class JobAlias(NamedTuple):
    """Says that the key of a submitted job was taken: the other job stands for it."""

    job: int
    became: int
    at: int
