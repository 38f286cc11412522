"""Requests as the engine takes them, with the rights of the caller."""

import pytest

from windlass.domain.access.rights import Identity, Role
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput
from windlass.messages.jobs import Where
from windlass.operations.dispatch.errors import Forbidden
from windlass.operations.parse import job_filter, job_spec
from windlass.operations.workflows import workflow_filter

TEAM = Identity(1, "ci", Role.SUBMITTER, ("a", "b"))


def test_a_job_belongs_to_a_namespace_that_its_submitter_sees() -> None:
    spec = job_spec(JobSpec(task="shell", timeout="2m"), TEAM, "jobs[0]")
    assert (spec.namespace, spec.submitted_by, spec.timeout) == ("a", "ci", "2m")
    with pytest.raises(Forbidden, match="does not see namespace c"):
        job_spec(JobSpec(task="shell", namespace="c"), TEAM, "jobs[0]")


def test_a_list_shows_no_more_than_the_caller_sees() -> None:
    assert job_filter(TEAM, Where()).namespaces == ("a", "b")
    with pytest.raises(Forbidden):
        job_filter(TEAM, Where(namespace="c"))
    with pytest.raises(InvalidInput, match="state"):
        workflow_filter(TEAM, state=["nope"], name=None, namespace=None, label=None, key=None)


def test_the_submitter_of_a_job_is_set_by_the_server_alone() -> None:
    with pytest.raises(InvalidInput, match=r"jobs\[3\]\.submitted_by"):
        job_spec(JobSpec(task="shell", submitted_by="root"), TEAM, "jobs[3]")
