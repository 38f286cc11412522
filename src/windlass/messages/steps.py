"""Messages about durable steps, signals and questions, version 1."""

from typing import Any, Literal

import msgspec

StepAction = Literal["find", "store", "sleep", "wait_for", "ask", "send", "alive", "join"]


class StepRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request from the function of a running job.

    `value` is the result to store or the payload to send, `name` is the signal's, `wait_ms` the
    maximum wait. `join` waits for `jobs` to end. `alive` only says that the function is still at
    work.
    """

    do: StepAction
    key: str = ""
    value: Any = None
    name: str = ""
    wait_ms: int | None = None
    question: str = ""
    schema: Any = None
    jobs: list[int] = []


class StepReply(msgspec.Struct, frozen=True):
    """The state of a step; `pending`: the function has to wait, and ends its attempt."""

    state: Literal["missing", "pending", "done", "timed_out"]
    value: Any = None


class SendRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal. If sent again with the same `key`, it gets the same answer and is not repeated."""

    name: str
    payload: Any = None
    key: str | None = None
    namespace: str | None = None


class SendReply(msgspec.Struct, frozen=True):
    """The number of the signal, and how many jobs waited for it when it came."""

    id: int
    applied: bool
    told: int


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """An unanswered question of a job; `schema` is JSON Schema, or None.

    `may_answer` says whether the caller may answer: submitters answer questions of their own jobs.
    """

    job: int
    key: str
    namespace: str
    question: str
    schema: Any
    asked_at: str
    until: str | None
    may_answer: bool = True


class QuestionList(msgspec.Struct, frozen=True):
    """One page; `next` is the cursor of the following one."""

    questions: list[Question]
    next: str | None = None


class AnswerRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer; `key` may be omitted if the job has asked only one question."""

    value: Any
    key: str | None = None


class AnswerReply(msgspec.Struct, frozen=True):
    """The question that was answered."""

    job: int
    key: str
