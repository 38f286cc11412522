"""Commands for jobs that wait: `send`, `questions` and `answer`."""

from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Flag, JobId, Json
from windlass.cli.output.tables import print_rows
from windlass.cli.output.text import print_answer, print_json, say
from windlass.domain.values.errors import InvalidInput
from windlass.messages.steps import Question

Value = Annotated[str, Parameter(allow_leading_hyphen=True)]


def send(
    signal: str,
    payload: Value = "null",
    /,
    *,
    text: Flag = False,
    key: str | None = None,
    namespace: str | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Send a signal to all jobs that wait for it, now or later (windlass.wait_for).

    Parameters
    ----------
    signal
        The name of the signal.
    payload
        What the jobs get, as JSON.
    text
        The payload is text, not JSON.
    key
        If a signal with this key was sent before, send nothing.
    namespace
        The namespace of the jobs.
    """
    value = _value("payload", payload, text)
    with at.client() as client:
        sent = client.send(signal, value, key=key, namespace=namespace)
    if json:
        print_json(sent)
    elif not sent.applied:
        say(f"signal {sent.id} was sent before")
    else:
        say(f"signal {sent.id}: {sent.told} waiting job{'s' * (sent.told != 1)} continue")


def questions(*, at: Connection = HERE, json: Json = False) -> None:
    """List the open questions of jobs (windlass.ask)."""
    with at.client() as client:
        found = client.questions()
    rows = [(q.job, q.key, q.question, _wanted(q), q.asked_at, q.until) for q in found]
    print_rows(
        found, json, ("job", "key", "question", "answer", "asked", "until"), rows, "no questions"
    )


def answer(
    job: JobId,
    value: Value,
    /,
    *,
    text: Flag = False,
    key: str | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Answer a question of a job; the first answer of the right type counts.

    Parameters
    ----------
    value
        The answer, as JSON: true, 5 or '{"size": "M"}'.
    text
        The answer is text, not JSON.
    key
        Which question, if the job has asked several.
    """
    given = _value("answer", value, text)
    with at.client() as client:
        done = client.answer(job, given, key=key)
    print_answer(done, json, f"job {done.job} continues with the answer to {done.key!r}")


def _value(field: str, given: str, text: bool) -> Any:
    if text:
        return given
    try:
        return msgspec.json.decode(given)
    except msgspec.DecodeError:
        raise InvalidInput(field, "JSON, or text with --text", given) from None


def _wanted(question: Question) -> str:
    """Shows what kind of answer a question needs."""
    schema = question.schema
    if not isinstance(schema, dict):
        return "any JSON"
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(one).decode() for one in schema["enum"])
    kind = schema.get("type")
    return kind if isinstance(kind, str) else msgspec.json.encode(schema).decode()
