"""A worker's request to enrol, and the credentials that it needs and gets.

A worker proves its identity with a secret that it generates and keeps; the first time it also needs
a one-time code. Its incarnation gets a token, which ends with it. All of them are written in the
transaction of the enrolment. So if the answer is lost, either the worker's secret is already valid,
or nothing has happened and the code is still valid.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from windlass.domain.access.rights import Role
from windlass.domain.access.tokens import Token
from windlass.domain.rows.records import Worker
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.names import NAME_LIMIT
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Stopped

ANYONE: Final = -1
MAX_SLOTS: Final = 100_000
CODE_REFUSED = "code_refused"


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


async def admit(work: Work, enrolment: Enrolment) -> Enrolment:
    """Uses up the code of an enrolment, and returns what its sender may ask for.

    Without proof that it is the worker of that name, it cannot claim that the old process is dead,
    nor report how its jobs ended.
    """
    if enrolment.code is not None:
        code = await work.tx.access.use_code(enrolment.code, work.now)
        if code is None or code.worker not in ("", enrolment.name):
            message = "this enrolment code is not valid, was already used, or is for another worker"
            raise Conflict(CODE_REFUSED, message)
        if code.takeover:
            enrolment = msgspec.structs.replace(enrolment, proven=True)
    if enrolment.proven:
        return enrolment
    return msgspec.structs.replace(enrolment, takeover=False, stopped=None)


async def set_credentials(work: Work, worker: Worker, enrolment: Enrolment) -> None:
    """Makes these the worker's only secret and token."""
    if enrolment.session is None:
        return
    if enrolment.holder != worker.id:
        await work.tx.access.remove_of_worker(worker.id)
    if enrolment.secret is not None:
        await _set_secret(work, worker, enrolment.secret)
    await work.tx.access.end_sessions(worker.id)
    await _insert(work, worker, enrolment.session, worker.incarnation)


async def _set_secret(work: Work, worker: Worker, digest: str) -> None:
    """Makes this the worker's only secret; raises `Conflict` if it was anyone's before."""
    known = await work.tx.access.by_digest(digest)
    if known is not None and known.worker == worker.id and not known.revoked_at:
        return
    if known is not None:
        raise Conflict("token_used", "this token was already used: enrol with a new one")
    await work.tx.access.remove_of_worker(worker.id)
    await _insert(work, worker, digest, 0)


async def _insert(work: Work, worker: Worker, digest: str, incarnation: int) -> None:
    role = str(Role.WORKER)
    name = worker_token_name(worker.name)
    row = Token(0, name, digest, role, (), worker.id, work.now, 0, 0, incarnation)
    await work.tx.access.insert(row)


def worker_token_name(worker: str) -> str:
    """Returns the name of the token of the worker with this name."""
    return f"worker {worker}"[:NAME_LIMIT]
