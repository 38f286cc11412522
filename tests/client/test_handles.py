"""Handles of one job or workflow are equal, whoever made them."""

import asyncio
from collections.abc import Iterator

import pytest

import windlass
from tests.embedded import functions
from windlass.tasks.submitting import ChildJob

HERE, THERE = "http://127.0.0.1:1", "http://127.0.0.1:2"


@pytest.fixture
def client() -> Iterator[windlass.Client]:
    with windlass.Client.embedded(":memory:", immediate=True) as made:
        yield made


def test_handles_of_one_job_are_equal_and_have_one_hash(client: windlass.Client) -> None:
    first, second = client.submit(functions.add, 1, 2), client.submit(functions.add, 1, 2)
    again = client.job(first.id)
    assert again is not first
    assert again == first != second
    assert {again, first, second} == {first, second}
    assert {first: "first"}[again] == "first"
    assert first != first.id
    assert first != first.asynchronous


def test_clients_show_where_their_jobs_are(client: windlass.Client) -> None:
    assert repr(client) == "<windlass.Client: embedded>"
    assert repr(windlass.Client(HERE)) == f"<windlass.Client: {HERE}>"
    assert (
        repr(windlass.AsyncClient(f"{THERE},{HERE}")) == f"<windlass.AsyncClient: {HERE}, {THERE}>"
    )


def test_async_handles_are_equal_too_also_in_another_event_loop(client: windlass.Client) -> None:
    job = client.submit(functions.add, 1, 2)

    async def elsewhere() -> bool:
        return client.as_async().job(job.id) == job.asynchronous

    assert asyncio.run(elsewhere())
    assert hash(client.as_async().job(job.id)) == hash(client.asynchronous.job(job.id))


def test_clients_of_one_server_have_the_same_jobs_and_others_do_not() -> None:
    one, same = windlass.Client(f"{HERE}, {THERE}/"), windlass.Client(f"{THERE},{HERE}")
    other = windlass.Client(THERE)
    assert one.job(1) == same.job(1) != other.job(1)
    assert len({one.job(1), same.job(1), other.job(1)}) == 2
    assert one.workflow(1) == same.workflow(1) != other.workflow(1)
    assert len({one.workflow(1), same.workflow(1), other.workflow(1)}) == 2
    assert one.asynchronous.workflow(1) == same.asynchronous.workflow(1)


def test_an_embedded_client_has_jobs_of_its_own(client: windlass.Client) -> None:
    with windlass.Client.embedded(":memory:", immediate=True) as other:
        assert client.job(1) == client.job(1) != other.job(1)


def test_handles_of_a_block_equal_themselves_before_and_after_it(client: windlass.Client) -> None:
    with client.workflow("sums") as flow:
        first, second = flow.submit(functions.add, 1, 2), flow.submit(functions.add, 1, 2)
        names = {first: "first", second: "second"}
        assert first != second
    assert [names[first], names[second]] == ["first", "second"]
    assert client.job(first.id) != first
    assert first != client.job(first.id)
    assert {flow} == {flow}
    assert client.workflow(flow.id) != flow


def test_handles_of_children_are_equal_inside_a_job() -> None:
    assert ChildJob(1) == ChildJob(1) != ChildJob(2)
    assert {ChildJob(1), ChildJob(1)} == {ChildJob(1)}
