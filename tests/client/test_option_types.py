"""What type checkers are told about options is what tasks take."""

from inspect import signature

from windlass.client.option_types import (
    EventFilters,
    JobFilters,
    WorkflowFilters,
    WorkflowOptions,
)
from windlass.messages.jobs import JOB_FILTERS, NewWorkflow
from windlass.messages.workflows import WORKFLOW_FILTERS
from windlass.operations.events import follow_events
from windlass.operations.workflows import list_workflows
from windlass.tasks.option_types import CallOptions, TaskOptions
from windlass.tasks.task import OF_CALLS, OF_FUNCTIONS


def test_every_option_has_a_type_and_no_other_is_told() -> None:
    assert set(CallOptions.__annotations__) == OF_CALLS
    assert set(TaskOptions.__annotations__) == OF_FUNCTIONS


def test_every_filter_and_option_of_clients_has_a_type_and_no_other_is_told() -> None:
    assert set(JobFilters.__annotations__) == set(JOB_FILTERS)
    assert set(WorkflowFilters.__annotations__) == set(WORKFLOW_FILTERS)
    asked = set(signature(list_workflows).parameters) - {"call", "after", "limit"}
    assert set(WORKFLOW_FILTERS) == asked
    fields = set(NewWorkflow.__struct_fields__) - {"name", "template"}
    assert set(WorkflowOptions.__annotations__) == fields
    asked = set(signature(follow_events).parameters) - {"call", "follow", "last"}
    assert set(EventFilters.__annotations__) == asked
