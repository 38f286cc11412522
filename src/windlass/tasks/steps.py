"""Durable steps inside a task: `windlass.step`, `sleep`, `wait_for`, `ask` and `send`.

A function that has to wait is unwound by `Suspended`: its attempt ends, its slot is free, and the
job runs again from its beginning when the wait is over. Steps that have ended return the stored
result. Async functions use the forms that end in `_async`.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, overload

import msgspec

from windlass.domain.tasks.references import FILE, RESULT, references_in, replaced
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import Conflict, InvalidInput, WaitTimeout
from windlass.domain.values.quantities import DurationLike, parse_duration_ms
from windlass.messages.jobs import Job
from windlass.messages.steps import StepReply, StepRequest
from windlass.tasks.current import Current, current, find_current, read_answer
from windlass.tasks.local_files import LocalFile
from windlass.tasks.submitting import AsyncChildJob, ChildJob, failure_of
from windlass.tasks.task import Task, known_task

if TYPE_CHECKING:
    from windlass.tasks.values.calls import CallCodec

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

STEP: Final = "step"  # the kind of request to the agent
FIRST: Final = 1  # the first attempt, which finds no steps


class Suspended(BaseException):
    """Raised inside a job that has to wait. Let it propagate; clean up in `finally`."""


def step(key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Calls a function and stores its result with the job; a later attempt gets it from there.

    The key is the step's name: each may be used once per attempt. It returns the stored value:
    lists, dicts and other JSON values, or the type that the function's annotation names. Outside
    jobs it only calls the function.
    """
    if find_current() is None:
        return function(*args, **kwargs)
    job = _begin(key)
    if job.attempt > FIRST:
        found = _ask(job, StepRequest(do="find", key=key))
        if found.state == "done":
            stored: R = _result(function, found, ChildJob)
            return stored
    value = function(*args, **kwargs)
    if inspect.isawaitable(value):
        _close(value)
        raise InvalidInput("function", "a plain function (step_async takes async ones)", function)
    result: R = _result(function, _ask(job, _store(key, function, value)), ChildJob)
    return result


@overload
async def step_async(
    key: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
) -> R: ...
@overload
async def step_async(
    key: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs
) -> R: ...
async def step_async(key: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Does the same in async functions; the function may be plain or async."""
    if find_current() is None:
        value = function(*args, **kwargs)
        return await value if inspect.isawaitable(value) else value
    job = _begin(key)
    if job.attempt > FIRST:
        found = await _ask_async(job, StepRequest(do="find", key=key))
        if found.state == "done":
            return _result(function, found, AsyncChildJob)
    value = function(*args, **kwargs)
    if inspect.isawaitable(value):
        value = await value
    return _result(function, await _ask_async(job, _store(key, function, value)), AsyncChildJob)


def sleep(duration: DurationLike, *, key: str | None = None) -> None:
    """Waits for some seconds, or a duration such as "1d", without holding a slot."""
    _asked(_sleep(duration, key))


async def sleep_async(duration: DurationLike, *, key: str | None = None) -> None:
    """Does the same in async functions."""
    await _asked_async(_sleep(duration, key))


def wait_for(signal: str, *, timeout: DurationLike | None = None, key: str | None = None) -> Any:
    """Waits for a signal and returns its payload; raises `WaitTimeout` when the time is up.

    It returns the oldest signal of this name in the job's namespace that was sent after the job was
    submitted and that no earlier wait of the job has returned.
    """
    return _asked(_wait_for(signal, timeout, key))


async def wait_for_async(
    signal: str, *, timeout: DurationLike | None = None, key: str | None = None
) -> Any:
    """Does the same in async functions."""
    return await _asked_async(_wait_for(signal, timeout, key))


@overload
def ask(question: str, *, timeout: DurationLike | None = None, key: str | None = None) -> str: ...
@overload
def ask(
    question: str, schema: type[T], *, timeout: DurationLike | None = None, key: str | None = None
) -> T: ...
@overload
def ask(
    question: str, schema: Any, *, timeout: DurationLike | None = None, key: str | None = None
) -> Any: ...
def ask(
    question: str, schema: Any = str, *, timeout: DurationLike | None = None, key: str | None = None
) -> Any:
    """Asks people a question and returns the answer; raises `WaitTimeout` when the time is up.

    `schema` is a type, such as `bool` or a dataclass, or a JSON Schema as a dict. An answer that
    does not fit is refused, and the job keeps waiting.
    """
    asked = _question(question, schema, timeout, key)
    while True:
        value, why = _typed(schema, _asked(asked))
        if why is None:
            return value
        asked = _again(asked, question, why)


@overload
async def ask_async(
    question: str, *, timeout: DurationLike | None = None, key: str | None = None
) -> str: ...
@overload
async def ask_async(
    question: str, schema: type[T], *, timeout: DurationLike | None = None, key: str | None = None
) -> T: ...
@overload
async def ask_async(
    question: str, schema: Any, *, timeout: DurationLike | None = None, key: str | None = None
) -> Any: ...
async def ask_async(
    question: str, schema: Any = str, *, timeout: DurationLike | None = None, key: str | None = None
) -> Any:
    """Does the same in async functions."""
    asked = _question(question, schema, timeout, key)
    while True:
        value, why = _typed(schema, await _asked_async(asked))
        if why is None:
            return value
        asked = _again(asked, question, why)


def send(signal: str, payload: Any = None, *, key: str | None = None) -> None:
    """Sends a signal to the jobs of this job's namespace; later attempts do not repeat it."""
    job, request = _send(signal, payload, key)
    _ask(job, request)


async def send_async(signal: str, payload: Any = None, *, key: str | None = None) -> None:
    """Does the same in async functions."""
    job, request = _send(signal, payload, key)
    await _ask_async(job, request)


def join(
    jobs: Sequence[ChildJob], timeout: DurationLike | None = None, return_exceptions: bool = False
) -> list[Any]:
    """Waits until these children have ended, and returns their results; ends the attempt."""
    return _values(_asked(_join(jobs, timeout)), return_exceptions)


async def join_async(
    jobs: Sequence[ChildJob], timeout: DurationLike | None = None, return_exceptions: bool = False
) -> list[Any]:
    """Does the same in async functions."""
    return _values(await _asked_async(_join(jobs, timeout)), return_exceptions)


Asked = tuple[Current, StepRequest]


def _sleep(duration: DurationLike, key: str | None) -> Asked:
    job, own = _keyed("sleep", key)
    return job, StepRequest(do="sleep", key=own, wait_ms=parse_duration_ms(duration, "duration"))


def _wait_for(signal: str, timeout: DurationLike | None, key: str | None) -> Asked:
    job, own = _keyed(f"wait_for {signal}", key)
    wait_ms = None if timeout is None else parse_duration_ms(timeout, "timeout")
    return job, StepRequest(do="wait_for", key=own, name=signal, wait_ms=wait_ms)


def _question(question: str, schema: Any, timeout: DurationLike | None, key: str | None) -> Asked:
    job, own = _keyed("ask", key)
    wait_ms = None if timeout is None else parse_duration_ms(timeout, "timeout")
    wanted = schema
    if schema is not None and not isinstance(schema, dict):
        from windlass.tasks.values.schema import answer_schema  # few functions need this import

        wanted = answer_schema(schema)
    request = StepRequest(do="ask", key=own, question=question, schema=wanted, wait_ms=wait_ms)
    return job, request


def _join(jobs: Sequence[ChildJob], timeout: DurationLike | None) -> Asked:
    for one in jobs:
        one.check_recorded()
    more = f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
    job, own = _keyed(f"result of job {jobs[0].id}{more}", None)
    wait_ms = None if timeout is None else parse_duration_ms(timeout, "timeout")
    ids = [one.id for one in jobs]
    return job, StepRequest(do="join", key=own, jobs=ids, wait_ms=wait_ms)


def _values(ended: Any, return_exceptions: bool) -> list[Any]:
    """Returns the results of these jobs; raises the error of the first that has none."""
    values: list[Any] = []
    for job in convert(ended, list[Job], "jobs"):
        if job.state == "completed":
            values.append(_value(job))
        elif return_exceptions:
            values.append(failure_of(job))
        else:
            raise failure_of(job)
    return values


def _value(job: Job) -> Any:
    """Returns a child's result, with the declared type if this program knows the function."""
    if next(references_in(job.result, FILE), None) is not None:
        raise Conflict(
            "result_has_files",
            f"the result of job {job.id} is a file, or too large to be read inside a job: pass its "
            "handle to a job that needs the result",
        )
    task = known_task(job.task, job.args)
    return job.result if task is None else task.codec.decode_result(job.result)


def _send(signal: str, payload: Any, key: str | None) -> Asked:
    from windlass.tasks.values.containers import plain_json  # few functions send signals

    job, own = _keyed(f"send {signal}", key)
    value = _json("payload", plain_json("payload", payload))
    return job, StepRequest(do="send", key=own, name=signal, value=value)


def _begin(key: str) -> Current:
    """Returns the job, and records that it uses this key; raises if it was used before."""
    if not isinstance(key, str):
        expected = 'the name of the step: windlass.step("charge", charge, order)'
        raise InvalidInput("key", expected, key)
    job = current()
    if key in job.keys:
        raise Conflict(
            "step_repeated",
            f"the key {key!r} was used before in this attempt: give each step a key of its own, "
            f'in a loop for example f"{key} {{n}}"',
        )
    job.keys.add(key)
    return job


def _keyed(name: str, key: str | None) -> tuple[Current, str]:
    """Returns the job and the key: the given one, or the name with the number of its uses."""
    if find_current() is None:
        call = name.partition(" ")[0]
        instead = "use client.send" if call == "send" else "submit the task that calls it"
        raise Conflict("no_job", f"windlass.{call} was called outside a job: {instead}")
    if key is None:
        keys, number = current().keys, 1
        while f"{name} {number}" in keys:
            number += 1
        key = f"{name} {number}"
    return _begin(key), key


def _store(key: str, function: Callable[..., Any], value: Any) -> StepRequest:
    codec = _codec_of(function)
    if codec is not None:
        value = codec.encode_result(value, handles=True)
    return StepRequest(do="store", key=key, value=_json(f"result of step {key}", value))


def _result(function: Callable[..., Any], reply: StepReply, handle: type[ChildJob]) -> Any:
    """Returns the stored value with its annotated type, with handles of the job's children."""
    codec = _codec_of(function)
    if codec is None:
        return reply.value
    recorded = partial(handle, recorded=True)
    return codec.decode_result(replaced(reply.value, RESULT, recorded))


def _codec_of(function: Callable[..., Any]) -> "CallCodec | None":
    """Returns the codec for results of the function; None if it does not declare a type."""
    from windlass.tasks.values.calls import CallCodec  # imported only for steps with a value

    if isinstance(function, Task):
        return function.codec
    try:
        return CallCodec(function)
    except (TypeError, ValueError):  # some functions in C
        return None


def _json(field: str, value: Any) -> msgspec.Raw:
    """Returns a value as JSON; raises `InvalidInput` for one that would change on the way."""
    try:
        return msgspec.Raw(msgspec.json.encode(value, enc_hook=partial(_no_files, field)))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidInput(field, "a JSON value", str(error)) from None


def _no_files(field: str, value: Any) -> Any:
    """Refuses a file of this attempt, since the next one would not find it."""
    if isinstance(value, LocalFile):
        expected = "without files, which disappear with the attempt; return their contents, or"
        raise InvalidInput(field, f"{expected}the file from the task itself", str(value.path))
    raise NotImplementedError(f"Encoding objects of type {type(value).__name__} is unsupported")


def _typed(schema: Any, value: Any) -> tuple[Any, str | None]:
    """Returns an answer as a value of the type, or why it does not fit."""
    if schema is None or isinstance(schema, dict):
        return value, None
    from windlass.tasks.values.schema import read_answer

    try:
        return read_answer(schema, value), None
    except InvalidInput as error:
        return None, error.message


def _again(asked: Asked, question: str, why: str) -> Asked:
    """Asks the question again: only the type itself could find the answer wrong."""
    job, request = asked
    _, key = _keyed(f"{request.key} again", None)
    return job, msgspec.structs.replace(request, key=key, question=f"{question} ({why})")


def _asked(asked: Asked) -> Any:
    return _outcome(*asked, _ask(*asked))


async def _asked_async(asked: Asked) -> Any:
    return _outcome(*asked, await _ask_async(*asked))


def _outcome(job: Current, request: StepRequest, reply: StepReply) -> Any:
    if reply.state == "pending":
        job.unmet.append(request.key)
        raise Suspended(request.key)
    if reply.state == "timed_out":
        what = f"signal {request.name}" if request.do == "wait_for" else f"{request.question!r}"
        if request.do == "join":
            what = request.key.rpartition(" ")[0]
        raise WaitTimeout(f"nothing came in time: {what}")
    return reply.value


def refuse_caught(job: Current) -> None:
    """Raises `Conflict` if a function returned although it had to wait: it continued too early.

    Its result would not reflect the wait.
    """
    if job.unmet:
        raise Conflict(
            "suspended_caught",
            f"the function caught windlass.Suspended of {job.unmet[0]!r} and continued "
            "before the wait was over: let it propagate (catch Exception, not "
            "BaseException, and gather without return_exceptions)",
        )


def _ask(job: Current, request: StepRequest) -> StepReply:
    return read_answer(job.channel.ask(job.seq, msgspec.json.encode(request), STEP), StepReply)


async def _ask_async(job: Current, request: StepRequest) -> StepReply:
    answer = await job.channel.ask_async(job.seq, msgspec.json.encode(request), STEP)
    return read_answer(answer, StepReply)


def _close(value: Any) -> None:
    close = getattr(value, "close", None)
    if close is not None:
        close()
