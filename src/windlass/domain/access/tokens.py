"""Tokens and enrolment codes as stores keep them.

Stores keep digests only, never the secrets.
"""

import re
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput

TOKEN_PREFIX: Final = "wl_"
SESSION_PREFIX: Final = "wl_s_"  # prefix of session secrets, which browsers keep in a cookie
MADE: Final = "token"  # by an admin, or for a worker
SESSION: Final = "session"  # of a browser that signed in
# Who acts is recorded by name: `job 7`, `worker w1`, `schedule nightly`, `windlass up`.
RESERVED: Final = ("job", "worker", "schedule", "reaction", "windlass", "embedded")
_OWN_TOKEN: Final = re.compile(TOKEN_PREFIX + r"[A-Za-z0-9_-]{43,200}")


class Token(NamedTuple):
    """A bearer token or a session; a time of 0 means "never", except in `created_at`.

    `last_used_at` is up to a minute late, and is not kept for workers, which have heartbeats.
    """

    id: int
    name: str
    digest: str
    role: str
    namespaces: tuple[str, ...]  # empty: all
    worker: int  # the worker it belongs to, 0 for a person's token
    created_at: int
    expires_at: int
    revoked_at: int
    incarnation: int = 0  # the worker's; 0: the secret it enrols with, or a person's token
    last_used_at: int = 0
    kind: str = MADE
    parent: int = 0  # the token that opened this session, which ends with it; 0: none


class Code(NamedTuple):
    """A code with which one worker may enrol once, while `used_at` is 0.

    With `takeover` it ends a live worker of that name. A code with a `token` enrols nobody: it
    belongs to a link that opens a session of this token.
    """

    digest: str
    created_at: int
    expires_at: int
    used_at: int
    takeover: int = 0  # 1: yes
    worker: str = ""  # the only name under which it enrols; empty: any
    token: int = 0  # whose sessions it opens; 0: it enrols a worker


def refuse_reserved(name: str) -> None:
    """Raises `InvalidInput` for a name that Windlass itself gives to submitters."""
    first, *_ = name.lower().split() or ("",)
    if first in RESERVED:
        expected = f"not to start with a word that Windlass uses itself ({', '.join(RESERVED)})"
        raise InvalidInput("name", expected, name)


def check_own_token(token: str) -> None:
    """Raises `InvalidInput` unless a worker's own token is long enough to be a secret."""
    if not _OWN_TOKEN.fullmatch(token):
        expected = f"{TOKEN_PREFIX} and 256 random bits in URL-safe base64"
        raise InvalidInput("token", expected, f"{len(token)} characters")
