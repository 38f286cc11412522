"""A worker whose jobs can get at each other serves one namespace, unless it is told otherwise."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.debian import missing_reason
from tests.worker.rig import Rig, play, state_of


def test_a_worker_in_mode_process_serves_the_default_namespace(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent() as agent:
            theirs = await rig.submit("true", namespace="team")
            ours = await rig.submit("true")
            assert state_of(await rig.ended(ours)) == "completed"
            assert (await rig.record(theirs)).facts.is_open
            found = await rig.engine.explain.job(theirs)
            assert found.smallest_change is not None
            (step,) = found.smallest_change.steps
            assert step.command == "windlass workers set w namespaces=default,team"
            assert "isolation process" in step.text
            limited = await rig.engine.explain.job(theirs, lambda name: name == "team")
            assert limited.smallest_change is not None
            assert "default" not in str(limited.smallest_change)
            changes = {"namespaces": ["default", "team"]}
            await rig.engine.workers.change_metadata(agent.worker, changes)
            assert state_of(await rig.ended(theirs)) == "completed"

    play(tmp_path, scene)


@pytest.mark.parametrize(
    "options",
    [
        {"namespaces": ("*",)}, {"namespaces": ("team", "other")}, {"trusts_jobs": True},
        {"isolation": "sandbox"},
    ],
)  # fmt: skip
def test_a_worker_serves_more_where_its_operator_or_its_mode_says_so(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    why = missing_reason("bwrap") if "isolation" in options else None
    if why is not None:
        pytest.skip(why)

    async def scene(rig: Rig) -> None:
        async with rig.agent(**options):
            for namespace in ("team", "other"):
                job = await rig.submit("true", namespace=namespace)
                assert state_of(await rig.ended(job)) == "completed"

    play(tmp_path, scene)
