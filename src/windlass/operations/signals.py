"""Signals, and questions that jobs ask people."""

from typing import Final

import msgspec

from windlass.domain.access.rights import Action, sees
from windlass.domain.values.ids import Cursor, Id
from windlass.domain.values.names import check_name
from windlass.messages.steps import (
    AnswerReply,
    AnswerRequest,
    Question,
    QuestionList,
    SendReply,
    SendRequest,
)
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.jobs import PageSize
from windlass.operations.parse import namespace_of
from windlass.operations.render import show_question

routes = Routes("/api/v1", "signals")


PAGES: Final = 20  # of questions that one call looks through


@routes.post("/signals", needs=Action.SEND_SIGNALS, status=201)
async def send(call: Call, data: Body[SendRequest]) -> SendReply:
    """Sends a signal to the jobs of a namespace that wait for it, now or later."""
    call.about = f"signal `{data.name}`"
    services = call.services
    namespace = namespace_of(data.namespace, call.who, Action.SEND_SIGNALS)
    check_name("namespace", namespace)
    # Without a key, it cannot be told from a second one.
    key = services.new_key() if data.key is None else data.key
    check_name("key", key)
    # A job whose transaction has committed was submitted before this signal.
    await services.queries.catch_up()
    sent = await services.engine.steps.send(namespace, data.name, data.payload, key, call.who.name)
    return SendReply(sent.signal.id, sent.applied, sent.told)


@routes.get("/questions", needs=Action.READ_JOBS)
async def questions(call: Call, after: Cursor = 0, limit: PageSize = 100) -> QuestionList:
    """Returns a page of the questions that jobs wait to have answered."""
    store = call.services.engine.store
    found: list[Question] = []
    for _ in range(PAGES):
        rows = await store.read(
            lambda tx, after=after: tx.steps.questions(after, limit)  # type: ignore[misc]
        )
        found += [show_question(row) for row in rows if sees(call.who, row.namespace)]
        if len(rows) < limit:
            return QuestionList(await _with_rights(call, found))
        after = rows[-1].job
        if len(found) >= limit:
            break
    return QuestionList(await _with_rights(call, found), str(after))


@routes.post("/jobs/{job:int}/answer", needs=Action.ANSWER_QUESTIONS)
async def answer(call: Call, job: Id, data: Body[AnswerRequest]) -> AnswerReply:
    """Answers a question of a job; the first answer of the right type counts."""
    services = call.services
    await services.queries.check_visible([job], call.who)
    await services.rights.check_own([job], call.who)
    done = await services.engine.steps.answer(job, data.key, data.value, call.who.name)
    return AnswerReply(done.job, done.key)


async def _with_rights(call: Call, found: list[Question]) -> list[Question]:
    refused = await call.services.rights.refusals([one.job for one in found], call.who)
    return [
        msgspec.structs.replace(
            one,
            may_answer=one.job not in refused
            and sees(call.who, one.namespace, Action.ANSWER_QUESTIONS),
        )
        for one in found
    ]
