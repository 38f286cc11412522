"""Signals, and questions that jobs ask people."""

from collections.abc import Callable
from typing import Final

import msgspec

from windlass.domain.access.rights import Action, Identity, sees
from windlass.domain.values.names import check_name
from windlass.engine.engine import Engine
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.jobs import PageSize
from windlass.operations.parse import namespace_of
from windlass.operations.queries import Queries
from windlass.operations.rights import Rights
from windlass.operations.step_rendering import show_question
from windlass.wire.numbers import Cursor, Id
from windlass.wire.steps import (
    AnswerReply,
    AnswerRequest,
    Question,
    QuestionList,
    SendReply,
    SendRequest,
)

routes = Routes("/api/v1", "signals")


@routes.post("/signals", needs=Action.SEND_SIGNALS, status=201)
async def send(call: Call, data: Body[SendRequest]) -> SendReply:
    """Sends a signal to the jobs of a namespace that wait for it, now or later."""
    call.about = f"signal `{data.name}`"
    return await call.services.signals.send(data, call.who)


@routes.get("/questions", needs=Action.READ_JOBS)
async def questions(call: Call, after: Cursor = 0, limit: PageSize = 100) -> QuestionList:
    """Returns a page of the questions that jobs wait to have answered."""
    return await call.services.signals.questions(call.who, after, limit)


@routes.post("/jobs/{job:int}/answer", needs=Action.ANSWER_QUESTIONS)
async def answer(call: Call, job: Id, data: Body[AnswerRequest]) -> AnswerReply:
    """Answers a question of a job; the first answer of the right type counts."""
    return await call.services.signals.answer(job, data, call.who)


PAGES: Final = 20  # of questions that one call looks through


class Signals:
    """Sends signals, lists questions and answers them, with the rights of the caller."""

    def __init__(self, engine: Engine, queries: Queries, new_key: Callable[[], str]) -> None:
        self._engine = engine
        self._queries = queries
        self._rights = Rights(engine)
        self._new_key = new_key

    async def send(self, request: SendRequest, who: Identity) -> SendReply:
        """Sends a signal; without a key it cannot be told from a second one."""
        namespace = namespace_of(request.namespace, who, Action.SEND_SIGNALS)
        check_name("namespace", namespace)
        key = self._new_key() if request.key is None else request.key
        check_name("key", key)
        # A job whose transaction has committed was submitted before this signal.
        await self._queries.catch_up()
        sent = await self._engine.steps.send(
            namespace, request.name, request.payload, key, who.name
        )
        return SendReply(sent.signal.id, sent.applied, sent.told)

    async def questions(self, who: Identity, after: int, limit: int) -> QuestionList:
        """Returns a page of open questions, those of jobs that the caller may see."""
        found: list[Question] = []
        for _ in range(PAGES):
            rows = await self._engine.store.read(
                lambda tx, after=after: tx.steps.questions(after, limit)  # type: ignore[misc]
            )
            found += [show_question(row) for row in rows if sees(who, row.namespace)]
            if len(rows) < limit:
                return QuestionList(await self._with_rights(found, who))
            after = rows[-1].job
            if len(found) >= limit:
                break
        return QuestionList(await self._with_rights(found, who), str(after))

    async def _with_rights(self, found: list[Question], who: Identity) -> list[Question]:
        refused = await self._rights.refusals([one.job for one in found], who)
        return [
            msgspec.structs.replace(
                one,
                may_answer=one.job not in refused
                and sees(who, one.namespace, Action.ANSWER_QUESTIONS),
            )
            for one in found
        ]

    async def answer(self, job: int, request: AnswerRequest, who: Identity) -> AnswerReply:
        """Answers a question of a job."""
        await self._queries.check_visible([job], who)
        await self._rights.check_own([job], who)
        done = await self._engine.steps.answer(job, request.key, request.value, who.name)
        return AnswerReply(done.job, done.key)
