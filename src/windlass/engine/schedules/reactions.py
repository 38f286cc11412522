"""Carries out the reactions to ends of workflows, from intents recorded with the end.

Follow-ups are submitted in the transaction that marks the intent as done: exactly once. Webhooks
are sent outside of a transaction: at least once, always with the same id. Retries see from the
workflow's run number whether they have happened.
"""

from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.lifecycle.workflow_state import Details, WorkflowState, decode_details
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.schedules import ReactionKind, ReactionRow, ReactionState, Trigger
from windlass.domain.values.errors import (
    Conflict,
    NotFound,
    Overloaded,
    StoreUnavailable,
    WindlassError,
)
from windlass.domain.values.quantities import format_moment, parse_duration_ms, readable_duration
from windlass.domain.webhooks import pause_ms
from windlass.engine.engine import Engine
from windlass.engine.jobs.unique_keys import Duplicate
from windlass.engine.schedules.templates import (
    MANY_ROWS,
    Planner,
    PlanRequest,
    find_template,
    plan_aside,
    plan_request_of,
    submit_planned,
)
from windlass.engine.transaction.unit_of_work import Work, reactions_for
from windlass.messages.reactions import Reaction
from windlass.ports.webhooks import Courier, Delivered, Delivery
from windlass.store.sql.transaction import ReadTx

SENDING_MS: Final = 120_000  # after this, another server may send a webhook whose sender died
MESSAGE_LIMIT: Final = 500

_encode = msgspec.json.Encoder(order="deterministic").encode


class _Task(NamedTuple):
    """An intent, what it should do, and the workflow it is about."""

    row: ReactionRow
    reaction: Reaction
    workflow: WorkflowRow
    details: Details


class Reactions:
    """Carries out reactions for one engine."""

    def __init__(self, engine: Engine, planner: Planner, courier: Courier) -> None:
        self._engine = engine
        self._planner = planner
        self._courier = courier

    async def of_workflow(self, workflow: int) -> list[ReactionRow]:
        """Returns all reactions to the ends of a workflow, done or pending."""
        return await self._engine.store.read(lambda tx: tx.reactions.of_workflow(workflow))

    async def due(self, webhooks: bool, count: int) -> list[ReactionRow]:
        """Returns the reactions that are due."""
        return await self._engine.store.read(lambda tx: tx.reactions.due(tx.now, webhooks, count))

    async def carry_out(self, row: ReactionRow) -> None:
        """Submits or retries; if that is refused for good, records the reason and gives up."""
        act = self._submit if row.kind == ReactionKind.SUBMIT else self._retry
        try:
            await act(row.id)
        except (StoreUnavailable, Overloaded):
            raise
        except Duplicate as same:
            found = f"workflow {same.workflow} with the same key has not ended"
            await self._conclude(row.id, ReactionState.DONE, same.workflow, found)
        except WindlassError as error:
            if isinstance(error, Conflict) and error.retry_after_ms is not None:
                return  # the next round tries again
            await self._conclude(row.id, ReactionState.FAILED, None, str(error))

    async def send(self, row: ReactionRow) -> Delivered | None:
        """Sends a webhook, unless another server is sending it."""
        try:
            delivery = await self._engine.run(lambda work: self.claim(work, row.id))
        except NotFound as gone:
            await self._conclude(row.id, ReactionState.FAILED, None, str(gone))
            return None
        if delivery is None:
            return None
        outcome = await self._courier.deliver(delivery)
        await self._engine.run(lambda work: _note_delivery(work, row.id, outcome))
        return outcome

    # Follow-ups

    async def _submit(self, reaction: int) -> None:
        await self._engine.run(lambda work: self._submit_within(work, reaction), MANY_ROWS)

    async def _submit_within(self, work: Work, reaction: int) -> None:
        task = await _pending(work.tx, reaction)
        if task is None:
            return
        order = _order(task)
        if isinstance(task.reaction.submit, str):
            namespace = task.workflow.namespace
            template = await find_template(work.tx, namespace, task.reaction.submit)
            order = plan_request_of(template, order)
        planned = await plan_aside(self._planner, order)
        submitted = await submit_planned(work, self._engine, planned)
        made = submitted.known_workflow
        await _end(work, task.row, ReactionState.DONE, made, f"submitted workflow {made}")

    # Retries

    async def _retry(self, reaction: int) -> None:
        """Retries the failed jobs after the next delay, if one is left."""
        task = await self._engine.store.read(lambda tx: _pending(tx, reaction))
        if task is None:
            return
        row = task.row
        if task.workflow.run != row.run or task.workflow.state != WorkflowState.FAILED:
            message = row.message or "it was already reopened"
            await self._conclude(row.id, ReactionState.DONE, row.result, message)
            return
        delay = await self._next_delay(task)
        if delay is None:
            await self._conclude(row.id, ReactionState.DONE, None, "no retries are left")
            return
        actor = f"reaction of workflow {row.workflow}"
        message = f"retried in {readable_duration(delay)}"
        # Record it first: if this process dies after the retry, the delay counts as used.
        noted = row._replace(tries=row.tries + 1, result=row.workflow, message=message)
        await self._engine.run(lambda work: work.tx.reactions.update(noted))
        not_before = await self._engine.now() + delay
        await self._engine.workflows.retry(row.workflow, True, actor, not_before=not_before)
        await self._conclude(row.id, ReactionState.DONE, row.workflow, message)

    async def _next_delay(self, task: _Task) -> int | None:
        """Returns the next delay; each earlier retry of this workflow has used one."""
        rows = await self.of_workflow(task.row.workflow)
        used = sum(1 for row in rows if row.result and _is_earlier(row, task.row))
        delays = [] if task.reaction.retry is None else task.reaction.retry.delays
        return parse_duration_ms(delays[used]) if used < len(delays) else None

    # Webhooks

    async def claim(self, work: Work, reaction: int) -> Delivery | None:
        """Claims a webhook to send it; other servers leave it alone for a while."""
        task = await _pending(work.tx, reaction)
        if task is None or task.row.next_at > work.now or task.reaction.webhook is None:
            return None
        row = task.row._replace(tries=task.row.tries + 1, next_at=work.now + SENDING_MS)
        await work.tx.reactions.update(row)
        hook = task.reaction.webhook
        return Delivery(delivery_id(row), hook.url, hook.secret or "", _body(task))

    async def _conclude(
        self, reaction: int, state: ReactionState, result: int | None, message: str
    ) -> None:
        async def step(work: Work) -> None:
            row = await work.tx.reactions.lock(reaction)
            if row is not None and row.state == ReactionState.PENDING:
                await _end(work, row, state, result, message)

        await self._engine.run(step)


async def _pending(tx: ReadTx, reaction: int) -> _Task | None:
    """Returns an intent that is not done yet; None if it is done or there is nothing to do."""
    row = await tx.reactions.read(reaction)
    if row is None or row.state != ReactionState.PENDING:
        return None
    found = await tx.workflows.newest(row.workflow + 1, 1)
    about = await tx.workflows.about([row.workflow])
    if not found or found[0].id != row.workflow or row.workflow not in about:
        raise NotFound("workflow", row.workflow)
    details = decode_details(about[row.workflow].body)
    values: list[Any] = reactions_for(details, row.trigger)
    return _Task(row, msgspec.convert(values[row.place], Reaction), found[0], details)


def _is_earlier(row: ReactionRow, now: ReactionRow) -> bool:
    """Returns True if this is the same reaction to an earlier end."""
    return (row.trigger, row.place) == (now.trigger, now.place) and row.run < now.run


def _order(task: _Task) -> PlanRequest:
    workflow, submit = task.workflow, task.reaction.submit
    jobs = [] if submit is None or isinstance(submit, str) else msgspec.to_builtins(submit)
    return PlanRequest(
        name=f"{workflow.name}, then",
        namespace=workflow.namespace,
        actor=f"reaction of workflow {workflow.id}",
        parameters=task.reaction.parameters,
        jobs=jobs,
        labels={"follows": str(workflow.id)},
    )


def delivery_id(row: ReactionRow) -> str:
    """Returns the id of a delivery, which is the same each time it is sent."""
    on = Trigger(row.trigger).name.lower()
    return f"{row.workflow}-{row.run}-{on}-{row.place}"


def _body(task: _Task) -> bytes:
    """Returns the body, which is the same each time: it contains only constant data."""
    row, workflow = task.row, task.workflow
    return _encode(
        {
            "delivery": delivery_id(row),
            "on": Trigger(row.trigger).name.lower(),
            "workflow": {
                "id": workflow.id,
                "name": workflow.name,
                "namespace": workflow.namespace,
                "state": WorkflowState(row.outcome).name.lower(),
                "run": row.run,
                "labels": task.details.labels,
                "template": task.details.template,
                "submitted_by": task.details.submitted_by,
                "created_at": format_moment(workflow.created_at),
                "finished_at": format_moment(row.created_at),
            },
        }
    )


async def _note_delivery(work: Work, reaction: int, outcome: Delivered) -> None:
    row = await work.tx.reactions.lock(reaction)
    if row is None or row.state != ReactionState.PENDING:
        return
    message = outcome.message or f"answered {outcome.status}"
    pause = None if outcome.final else pause_ms(row.tries)
    if outcome.ok:
        await _end(work, row, ReactionState.DONE, outcome.status, message)
    elif pause is None:
        await _end(work, row, ReactionState.FAILED, outcome.status, message)
    else:
        changed = row._replace(next_at=work.now + pause, result=outcome.status)
        await work.tx.reactions.update(changed._replace(message=message[:MESSAGE_LIMIT]))


async def _end(
    work: Work, row: ReactionRow, state: ReactionState, result: int | None, message: str
) -> None:
    ended = row._replace(
        state=state, finished_at=work.now, result=result, message=message[:MESSAGE_LIMIT]
    )
    await work.tx.reactions.update(ended)
    on, kind = Trigger(row.trigger).name.lower(), ReactionKind(row.kind).name.lower()
    message = f"Workflow {row.workflow}, run {row.run}: {kind} on {on} {state.name.lower()}"
    data = {"workflow": row.workflow, "run": row.run, "reaction": row.id, "result": result}
    work.say(EventKind.REACTION, f"{message}: {ended.message}", actor="reactions", data=data)
