"""What tests of workflows ask for: rows, states, and jobs by name."""

from collections.abc import Mapping
from typing import Any

from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig
from tests.support.specs import spec_of
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.rows.records import WorkflowRow
from windlass.engine.submit.submission import Submitted, WorkflowSpec


async def row_of(rig: Rig, workflow: int) -> WorkflowRow:
    """The stored row of a workflow."""
    return (await rig.store.read(lambda tx: tx.workflows.read([workflow])))[workflow]


async def state_of(rig: Rig, workflow: int) -> str:
    return WorkflowState((await row_of(rig, workflow)).state).name.lower()


async def submit_flow(rig: Rig, *jobs: Mapping[str, Any], **fields: Any) -> Submitted:
    """Submit jobs as a workflow that has these fields."""
    specs = [spec_of(**{"task": "shell", **job}) for job in jobs]
    return await rig.engine.submit(specs, WorkflowSpec(**{"name": "w", **fields}))


async def finish_all(agent: Agent, failing: frozenset[int] = frozenset(), most: int = 1_000) -> int:
    """Run whatever is there to its end, these jobs badly; how many ran."""
    ran = 0
    while ran < most and (jobs := await agent.take(100)):
        for job in jobs:
            await agent.finish(job, "failed" if job.job in failing else "completed")
        await agent.engine.settled()
        ran += len(jobs)
    return ran
