"""Every way to set a worker's lists refuses one that would not do what its author means."""

from collections.abc import Awaitable, Callable

import pytest

from tests.engine.support.cloud import Sky
from tests.engine.support.rig import Rig
from windlass.domain.values.errors import InvalidInput

Set = Callable[[Rig, dict[str, object]], Awaitable[object]]


async def replaced(rig: Rig, metadata: dict[str, object]) -> None:
    await rig.engine.workers.set_metadata((await rig.agent("w")).id, metadata)


async def changed(rig: Rig, metadata: dict[str, object]) -> None:
    await rig.engine.workers.change_metadata((await rig.agent("w")).id, metadata)


async def enrolled(rig: Rig, metadata: dict[str, object]) -> None:
    await rig.agent("w", metadata=metadata)


async def in_a_pool(rig: Rig, metadata: dict[str, object]) -> None:
    await Sky(rig).apply(metadata=metadata)


@pytest.mark.parametrize("set_them", [replaced, changed, enrolled, in_a_pool])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tasks_denylist", 5), ("tasks_denylist", {"shell": True}), ("tasks_denylist", ["shel"]),
        ("tasks_allowlist", 5), ("namespaces", [7]),
    ],
)  # fmt: skip
async def test_a_wrong_list_is_refused_with_its_field(
    memory_rig: Rig, set_them: Set, key: str, value: object
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await set_them(memory_rig, {key: value})
    assert refused.value.field == f"metadata.{key}"
    assert refused.value.got in (value, "shel")


@pytest.mark.parametrize("set_them", [replaced, changed, in_a_pool])
async def test_a_task_that_nobody_has_named_cannot_be_denied(rig: Rig, set_them: Set) -> None:
    with pytest.raises(InvalidInput, match=r"metadata\.tasks_denylist"):
        await set_them(rig, {"tasks_denylist": ["render"]})
    await rig.submit(task="render")
    await set_them(rig, {"tasks_denylist": ["render"]})
    await rig.agent("other", metadata={"tasks_allowlist": ["encode"]})
    await set_them(rig, {"tasks_denylist": ["encode"]})
