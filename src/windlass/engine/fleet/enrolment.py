"""A worker's request to enrol, as the engine takes it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.messages.enrolment import Stopped

ANYONE: Final = -1
MAX_SLOTS: Final = 100_000


class Enrolment(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a worker's process to enrol.

    `takeover` means that it holds the lock of the agent's state directory and has killed the
    process groups recorded there, so that nothing is left of an older incarnation. `replaces` is
    the newest incarnation recorded there: a late or duplicate enrolment must not end an incarnation
    that began after it. None means that this cannot happen. A worker that is not `approved` waits
    for an operator. `holder` is the worker whose token was presented: 0 for none, `ANYONE` for a
    token or code that may act for all workers. `proven` means that the request comes from the
    worker of that name, or from an operator; otherwise it cannot end a live one. `code` is used up;
    `secret` is what the worker enrols with from now on, `session` the token of its incarnation (all
    of them digests). `source` is the address of the sender. `stopped` is what its last process
    could not report.
    """

    name: str
    slots: int = 1
    metadata: Mapping[str, object] = {}
    takeover: bool = False
    replaces: int | None = None
    approved: bool = True
    holder: int = ANYONE
    proven: bool = True
    code: str | None = None
    secret: str | None = None
    session: str | None = None
    source: str = ""
    stopped: Stopped | None = None

    def proves_dead(self, incarnation: int) -> bool:
        """Returns True if nothing of this incarnation can be left."""
        return self.takeover and (self.replaces is None or incarnation <= self.replaces)


def check_enrolment(enrolment: Enrolment) -> None:
    """Raises `InvalidInput` for an invalid enrolment."""
    name = enrolment.name
    if not name or len(name) > 200 or not name.isprintable():
        raise InvalidInput("name", "printable text of 1 to 200 characters", name)
    if not 1 <= enrolment.slots <= MAX_SLOTS:
        raise InvalidInput("slots", f"an integer from 1 to {MAX_SLOTS}", enrolment.slots)
