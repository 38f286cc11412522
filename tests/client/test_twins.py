"""Every call of the blocking client is one of the asynchronous client, called the same way."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import windlass
from tests.support.blocking_client import ONLY_ASYNC, in_blocking_words
from windlass.client import resources
from windlass.client.blocking import resources as blocking_resources

TWINS: dict[type, type] = {
    windlass.Client: windlass.AsyncClient,
    windlass.JobHandle: windlass.AsyncJob,
    windlass.WorkflowHandle: windlass.AsyncWorkflow,
    windlass.Workflow: windlass.AsyncWorkflowBlock,
    blocking_resources.Workers: resources.AsyncWorkers,
    blocking_resources.Queues: resources.AsyncQueues,
    blocking_resources.Templates: resources.AsyncTemplates,
    blocking_resources.Schedules: resources.AsyncSchedules,
    blocking_resources.Pools: resources.AsyncPools,
    blocking_resources.Tokens: resources.AsyncTokens,
}
ONLY_BLOCKING = {
    "asynchronous": "what is behind it",
    "as_async": "the asynchronous client is one",
    "client": "asynchronous handles have a service",
    "run": "it runs coroutines in the client's thread",
    "run_from_here": "it begins coroutines in the caller's thread",
}
# `embedded` has an option of its own, `close` ends a thread too.
OWN_WORDS = {"close", "embedded"}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def function(kind: type, name: str) -> Callable[..., Any]:
    found: Any = getattr(kind, name)
    call: Callable[..., Any] = getattr(found, "fget", found)  # that of a property
    return call


def parameters(call: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    found = inspect.signature(call).parameters.values()
    return [(one.name, one.kind, one.default) for one in found]


def shared_methods() -> Iterator[Any]:
    for blocking, twin in TWINS.items():
        for name in sorted(public(blocking) & public(twin) - OWN_WORDS):
            yield pytest.param(blocking, twin, name, id=f"{blocking.__name__}.{name}")


@pytest.mark.parametrize("blocking", TWINS)
def test_a_class_has_the_methods_of_its_twin(blocking: type) -> None:
    twin = TWINS[blocking]
    names = {kind.__name__ for kind in twin.__mro__}
    assert public(twin) - public(blocking) <= {name for kind, name in ONLY_ASYNC if kind in names}
    assert public(blocking) - public(twin) <= ONLY_BLOCKING.keys()


@pytest.mark.parametrize(("blocking", "twin", "name"), [*shared_methods()])
def test_a_method_is_called_and_described_as_its_twin(
    blocking: type, twin: type, name: str
) -> None:
    one, other = function(blocking, name), function(twin, name)
    assert parameters(one) == parameters(other)
    assert other.__doc__ is not None
    assert one.__doc__ == in_blocking_words(other.__doc__)


def test_clients_are_made_alike() -> None:
    blocking, twin = parameters(windlass.Client), parameters(windlass.AsyncClient)
    assert blocking[:-2] == twin[:-1]
    assert [name for name, *_ in twin[-1:] + blocking[-2:]] == ["service", "client", "thread"]
    embedded = parameters(windlass.Client.embedded)
    assert embedded[:-1] == parameters(windlass.AsyncClient.embedded)
    assert embedded[-1][0] == "immediate"


def test_waiting_for_many_jobs_is_alike() -> None:
    for one, other in (
        (windlass.gather, windlass.gather_async),
        (windlass.as_completed, windlass.as_completed_async),
    ):
        assert parameters(one) == parameters(other)
