"""Functions that add jobs to their own workflow while it runs."""

import sys
from pathlib import Path

import windlass
from tests.embedded import functions
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import NewWorkflow
from windlass.messages.workflows import Workflow


def start(client: windlass.Client, job: JobSpec) -> tuple[int, AsyncWorkflow]:
    """Submit one job as a workflow."""
    asynchronous = client.asynchronous
    reply = client.run(asynchronous.submit_workflow(NewWorkflow(name="w"), [job]))
    assert reply.workflow is not None
    return reply.ids[0], asynchronous.workflow(reply.workflow)


def finish(client: windlass.Client, workflow: AsyncWorkflow) -> Workflow:
    return client.run(workflow.complete(60))


def test_a_function_adds_jobs_to_its_workflow_once_for_each_key(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=2) as client:
        plan, workflow = start(client, functions.plan.job(3))
        assert finish(client, workflow).counts == {"completed": 5}
        children = client.job(plan).result()
        assert len(children) == 4
        assert {client.job(child).info().workflow for child in children} == {workflow.id}
        assert {client.job(child).info().submitted_by for child in children} == {f"job {plan}"}


def test_an_async_function_does_so_too(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=2) as client:
        plan, workflow = start(client, functions.plan_async.job(2))
        assert finish(client, workflow).jobs == 3
        assert len(client.job(plan).result()) == 2


def test_what_is_refused_is_raised_in_the_function(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=2) as client:
        plan, workflow = start(client, functions.plan_badly.job())
        assert finish(client, workflow).jobs == 1
        assert client.job(plan).result().startswith("InvalidInput: expected jobs[0].args.argv")
        said = client.submit(functions.plan_one_badly).result(timeout=60)
        assert said.startswith("InvalidInput: expected priority of add to be high")


def test_a_shell_job_adds_jobs_to_its_workflow_without_a_server(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "windlass", "submit", "--key", "k", "--priority", "+1"]
    plan = JobSpec(task="shell", args={"argv": [*words, "--", "true"]}, priority=3)
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=2) as client:
        planner, workflow = start(client, plan)
        assert finish(client, workflow).counts == {"completed": 2}
        (child,) = (job for job in client.run(workflow.jobs()) if job.id != planner)
        assert (child.priority.base, child.submitted_by) == (4, f"job {planner}")
