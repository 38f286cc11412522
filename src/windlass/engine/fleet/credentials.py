"""What a worker enrols with: a code that is used up, and the token that it presents from then on.

Both are written in the transaction of the enrolment. So if its answer is lost, the worker finds
its token valid, or nothing has happened and the code still counts.
"""

from windlass.domain.access.roles import Role
from windlass.domain.access.tokens import Token
from windlass.domain.rows.records import Worker
from windlass.domain.values.errors import Conflict
from windlass.domain.values.names import NAME_LIMIT
from windlass.engine.transaction.unit_of_work import Work

CODE_REFUSED = "code_refused"


async def use_code(work: Work, digest: str) -> None:
    """Uses up an enrolment code; raises `Conflict` if it is not valid."""
    if not await work.tx.access.use_code(digest, work.now):
        raise Conflict(CODE_REFUSED, "this enrolment code is not valid, or was used already")


async def set_token(work: Work, worker: Worker, digest: str) -> None:
    """Makes this the worker's only token; raises `Conflict` if it was anyone's before."""
    known = await work.tx.access.by_digest(digest)
    if known is not None and known.worker == worker.id and not known.revoked_at:
        return
    if known is not None:
        raise Conflict("token_used", "this token was used before: enrol with a new one")
    await work.tx.access.remove_of_worker(worker.id)
    name = f"worker {worker.name}"[:NAME_LIMIT]
    await work.tx.access.insert(
        Token(0, name, digest, str(Role.WORKER), (), worker.id, work.now, 0, 0)
    )
