"""Templates, schedules and reactions of a program that has no server."""

from pathlib import Path
from typing import Any

import windlass
from tests.support.running import run
from tests.support.waiting import until
from windlass.domain.config import Config

BODY: dict[str, Any] = {
    "name": "small",
    "parameters": {"word": {"default": "hi"}},
    "jobs": {"say": {"run": ["echo", "${{ parameters.word }}"]}},
    "on_success": [{"submit": "last"}],
}
LAST: dict[str, Any] = {"name": "last", "jobs": {"end": {"run": ["true"]}}}


def test_a_template_is_started_and_what_follows_it_runs(tmp_path: Path) -> None:
    async def scenario() -> None:
        config = Config(reactions_interval_ms=50)
        opened = windlass.AsyncClient.embedded(tmp_path / "jobs.db", workers=1, config=config)
        async with opened as client:
            for name, body in (("last", LAST), ("small", BODY)):
                await client.templates.put(name, body)
            first = await client.start_template("small", {"word": "hello"})
            assert (await first.wait(60)).state == "completed"

            async def followed() -> bool:
                (row,) = await first.reactions()
                return row.state == "done"

            await until("the follow-up", followed, 60)
            (row,) = await first.reactions()
            assert row.result is not None
            assert (await client.workflow(row.result).wait(60)).name == "last"
            await client.schedules.put("daily", "@daily", template="last@1")
            ran = await client.schedules.run("daily")
            assert ran.workflow is not None
            assert (await client.workflow(ran.workflow).wait(60)).template == "last@1"
            assert await client.schedules.pause("daily") is True
            assert [s.name for s in await client.schedules.list()] == ["daily"]
            assert (await client.schedules.show("daily")).paused
            assert await client.schedules.remove("daily") is True
            assert len(await client.templates.list()) == 2
            assert (await client.templates.show("small")).body == BODY
            assert await client.templates.remove("small") is True

    run(scenario())
