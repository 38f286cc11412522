"""The credentials with which a worker enrols, and the token of its new incarnation.

A worker proves its identity with a secret that it generates and keeps; the first time it also needs
a one-time code. Its incarnation gets a token, which ends with it. All of them are written in the
transaction of the enrolment. So if the answer is lost, either the worker's secret is already valid,
or nothing has happened and the code is still valid.
"""

import msgspec

from windlass.domain.access.rights import Role
from windlass.domain.access.tokens import Token
from windlass.domain.rows.records import Worker
from windlass.domain.values.errors import Conflict
from windlass.domain.values.names import NAME_LIMIT
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.transaction.unit_of_work import Work

CODE_REFUSED = "code_refused"


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
