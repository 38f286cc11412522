"""Routes about signals, and about questions that jobs ask people."""

from windlass.domain.access.rights import Action
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.jobs import PageSize
from windlass.wire.numbers import Cursor, Id
from windlass.wire.steps import AnswerReply, AnswerRequest, QuestionList, SendReply, SendRequest

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
