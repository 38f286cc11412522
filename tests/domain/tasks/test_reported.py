"""What workers tell about functions is bounded and plain, whatever they send."""

from typing import Any

import pytest

from windlass.domain.tasks.reported import (
    ALL_LIMIT,
    DOC_LIMIT,
    MAX_TASKS,
    ReportedTask,
    pack,
    unpack,
)


def told(**fields: Any) -> dict[str, Any]:
    return {"name": "resize", "path": "shop:resize", **fields}


def test_what_is_packed_is_unpacked() -> None:
    task = ReportedTask(
        name="resize", path="shop:resize", doc="Resizes.", schema={"type": "object"},
        options={"queue": "batch"}, version="2",
    )  # fmt: skip
    assert unpack(pack([task])) == [task]


def test_a_worker_tells_no_more_than_fits() -> None:
    large = {"properties": {"a": {"title": "x" * 3_000}}}
    many = [ReportedTask(name=f"t{n}", path="a:b", schema=large) for n in range(1_000)]
    assert 10 < len(pack(many)) <= ALL_LIMIT // 3_000
    assert len(pack(ReportedTask(name=f"t{n}", path="a:b") for n in range(1_000))) == MAX_TASKS
    (huge,) = pack([ReportedTask(name="t", path="a:b", schema={"title": "x" * 9_000})])
    assert huge == {"name": "t", "path": "a:b"}


@pytest.mark.parametrize(
    "sent",
    [
        None, 1, "text", {}, [1], ["x"], [{}], [{"name": 1, "path": "a"}], [told(schema="x")],
        [told(name="")], [told(name="a\nb")], [told(path="\x1b[31m")], [told(name="x" * 501)],
        [told(schema={"a": "x" * 5_000})], [told(options=[1])],
    ],
)  # fmt: skip
def test_what_does_not_fit_is_left_out(sent: Any) -> None:
    assert unpack(sent) == []


def test_a_deep_value_is_left_out() -> None:
    deep: Any = {}
    for _ in range(500):
        deep = {"a": deep}
    assert unpack([told(schema=deep)]) == []


def test_text_loses_control_characters_and_its_end() -> None:
    (task,) = unpack(
        [told(doc="\x1b]0;title\x07Resizes\n." + "x" * 500, schema={"a\x00": ["\u202eb"]})]
    )
    assert task.doc.startswith("]0;titleResizes.")
    assert len(task.doc) <= DOC_LIMIT
    assert task.schema == {"a": ["b"]}


def test_only_the_first_tasks_of_a_worker_count() -> None:
    assert len(unpack([told(name=f"t{n}") for n in range(10_000)])) == MAX_TASKS
