"""Tokens and enrolment codes as stores keep them.

Stores keep digests only, never the secrets.
"""

from typing import NamedTuple


class Token(NamedTuple):
    """A bearer token; 0 means "never" in `expires_at` and `revoked_at`."""

    id: int
    name: str
    digest: str
    role: str
    namespaces: tuple[str, ...]  # empty: all
    worker: int  # the worker it belongs to, 0 for a person's token
    created_at: int
    expires_at: int
    revoked_at: int


class Code(NamedTuple):
    """A code with which one worker may enrol once, while `used_at` is 0."""

    digest: str
    created_at: int
    expires_at: int
    used_at: int
