"""Shapes are equal when needs are equal, and say who can run them."""

import msgspec
import pytest

from windlass.domain.matching.clauses import canonical_requires, canonical_resources
from windlass.domain.matching.shapes import Shape, can_run, shape_digest, shape_mismatches


def shape(
    *requires: str,
    namespace: str = "team",
    queue: str = "default",
    task: str = "shell",
    cpus: int = 0,
) -> Shape:
    return Shape(
        namespace, queue, task, canonical_requires(requires), canonical_resources({"cpus": cpus})
    )


def test_equal_needs_are_one_shape() -> None:
    one = shape("memory>=4GiB", "os==linux", cpus=2)
    other = shape("os == linux", "system:memory>=4096MiB", "os==linux", cpus=2)
    assert one == other
    assert hash(one) == hash(other)
    assert shape_digest(one) == shape_digest(other)


@pytest.mark.parametrize(
    "other",
    [
        shape(namespace="other"),
        shape(queue="live"),
        shape(task="python"),
        shape("os==linux"),
        shape(cpus=1),
        shape("a==true"),
        shape("a==1"),
    ],
    ids=shape_digest,
)
def test_a_shape_that_differs_in_anything_has_another_digest(other: Shape) -> None:
    assert shape_digest(other) != shape_digest(shape())


def test_the_digest_is_the_same_in_every_process() -> None:
    assert shape_digest(shape("memory>=4GiB", cpus=2)) == "df7e3d8e24721b4cb2c3534046927542"


def test_a_shape_survives_its_body_in_the_store() -> None:
    one = shape("memory>=4GiB", "os in a,b", "load<0.5", "v matches >=5", cpus=2)
    copy = msgspec.json.decode(msgspec.json.encode(one), type=Shape)
    assert copy == one
    assert shape_digest(copy) == shape_digest(one)


def test_a_worker_serves_all_namespaces_unless_it_lists_some() -> None:
    assert can_run(shape(), {}) is None
    assert can_run(shape(), {"namespaces": None}) is None
    assert can_run(shape(), {"namespaces": ["other", "team"]}) is None
    mismatch = can_run(shape(), {"namespaces": ["other"]})
    assert mismatch is not None
    assert mismatch.text == "needs namespace team, has other namespaces"
    assert can_run(shape(), {"namespaces": []}) is not None


def test_a_mismatch_does_not_name_the_namespaces_that_a_workers_secret_is_for() -> None:
    wanted = shape("secret:TOKEN in *,team")
    mismatch = can_run(wanted, {"secret:TOKEN": ["other"]})
    assert mismatch is not None
    assert mismatch.has == "it for other namespaces"


def test_requirements_resources_and_task_lists_are_checked() -> None:
    metadata: dict[str, object] = {"system:cpus": 1, "tasks_denylist": ["python"]}
    assert can_run(shape(cpus=1), metadata) is None
    for refused in (shape(cpus=2), shape("os==linux"), shape(task="python")):
        assert can_run(refused, metadata) is not None


def test_explain_sees_everything_that_is_missing() -> None:
    metadata: dict[str, object] = {"system:cpus": 1, "namespaces": ["other"]}
    found = list(shape_mismatches(shape("os==linux", cpus=2), metadata))
    assert [mismatch.key for mismatch in found] == ["namespaces", "system:os", "system:cpus"]
    assert can_run(shape("os==linux", cpus=2), metadata) == found[0]
