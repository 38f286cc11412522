"""Who may do what: tokens and the codes with which workers enrol, as stores keep them.

Secrets never reach a store, only digests of them.
"""

from typing import NamedTuple


class Token(NamedTuple):
    """A bearer token; 0 stands for "never" in `expires_at` and `revoked_at`."""

    id: int
    name: str
    digest: str
    role: str
    namespaces: tuple[str, ...]  # empty: all
    worker: int  # whose token it is, 0 for a person's
    created_at: int
    expires_at: int
    revoked_at: int


class Code(NamedTuple):
    """A code with which one worker may enrol once, while `used_at` is 0."""

    digest: str
    created_at: int
    expires_at: int
    used_at: int
