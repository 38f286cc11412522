"""An alarm that did not arrive is sent again by later runs, not for ever, and never twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fuzzing.roles.test_alarms import MailServer, alarms_to
from tests.fuzzing.roles.test_run_health import REFUSES
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import World
from tests.fuzzing.trackers.servers import SECRET, Receiver, running
from tests.support.running import run
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.alarms.outbox import (
    FIRST_PAUSE_MS,
    KEPT_MS,
    MAX_PAUSE_MS,
    outbox_file,
    pause_ms,
    repeat_alarms,
)
from windlass_fuzz.config.solver_file import parse_solver
from windlass_fuzz.roles.status import LostAlarm, read_status


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_ALARMS_SECRET", SECRET)


class Scene(NamedTuple):
    """A world whose newest build raised an alarm that the webhook refused; the mail arrived."""

    world: World
    commit: str
    receiver: Receiver
    mails: MailServer

    async def later(self, by_ms: int = FIRST_PAUSE_MS) -> None:
        """Runs a builder that has nothing to build."""
        self.world.clock.ahead_ms += by_ms
        assert (await self.world.build()).outcome == "nothing"

    async def lost(self) -> list[LostAlarm]:
        return (await read_status(self.world.pipeline)).lost_alarms


@asynccontextmanager
async def a_scene(folder: Path, tries: int = 6) -> AsyncIterator[Scene]:
    receiver = Receiver()
    async with running(receiver), MailServer().running() as mails:
        more = alarms_to(receiver, mails).replace("alarms:\n", f"alarms:\n  tries: {tries}\n")
        world = World(folder, more=more)
        commit = world.commit("wrong flag", solver_sh=REFUSES)
        await world.enqueue(commit)
        receiver.refuse = 403
        assert (await world.build()).alarm
        assert (len(receiver.requests), len(mails.mails)) == (1, 1)
        yield Scene(world, commit, receiver, mails)


def test_what_did_not_arrive_is_sent_again_once_and_after_a_pause(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_scene(tmp_path) as scene:
            (lost,) = await scene.lost()
            assert (lost.commit, lost.place, lost.tries) == (scene.commit, "webhook", 1)
            assert lost.next_at is not None
            scene.receiver.refuse = 0
            await scene.later(FIRST_PAUSE_MS // 2)
            assert len(scene.receiver.requests) == 1, "it is too early"
            await scene.later()
            (told,) = scene.receiver.deliveries.values()
            assert told["commit"] == scene.commit
            assert await scene.lost() == []
            for _ in range(3):
                await scene.later(MAX_PAUSE_MS)
            assert (len(scene.receiver.requests), len(scene.mails.mails)) == (2, 1)

    run(scenario())


def test_a_fuzzers_run_repeats_it_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_scene(tmp_path) as scene:
            scene.receiver.refuse = 0
            scene.world.clock.ahead_ms += FIRST_PAUSE_MS
            assert (await scene.world.fuzz()).outcome == "nothing"
            assert len(scene.receiver.deliveries) == 1

    run(scenario())


def test_after_some_tries_it_is_given_up_and_status_says_so(tmp_path: Path) -> None:
    async def scenario() -> World:
        async with a_scene(tmp_path, tries=3) as scene:
            await scene.later(pause_ms(1))
            await scene.later(pause_ms(1))
            assert len(scene.receiver.requests) == 2, "the second pause is longer"
            await scene.later(pause_ms(1))
            assert len(scene.receiver.requests) == 3
            (lost,) = await scene.lost()
            assert (lost.tries, lost.next_at) == (3, None)
            scene.receiver.refuse = 0
            await scene.later(MAX_PAUSE_MS)
            assert (len(scene.receiver.requests), scene.receiver.deliveries) == (3, {})
            return scene.world

    world = run(scenario())
    code, said, _ = Commands(world).run("status", "scripted")
    assert (code, "did not reach the webhook" in said, "3 tries; given up" in said) == (
        0, True, True,
    ), said  # fmt: skip
    world.clock.ahead_ms += KEPT_MS
    assert run(world.build()).outcome == "nothing"
    assert run(outbox_file(world.pipeline).read()).undelivered == []


def test_an_alarm_that_is_over_is_not_repeated(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_scene(tmp_path) as scene:
            await scene.world.pipeline.health.update(lambda health: health._replace(commits={}))
            scene.receiver.refuse = 0
            await scene.later()
            assert (scene.receiver.deliveries, await scene.lost()) == ({}, [])

    run(scenario())


def test_two_runs_at_once_send_it_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_scene(tmp_path) as scene:
            scene.receiver.refuse = 0
            world = scene.world
            world.clock.ahead_ms += FIRST_PAUSE_MS
            said: list[str] = []
            await asyncio.gather(
                *(repeat_alarms(world.pipeline, world.solver.alarms, said.append) for _ in "abc")
            )
            assert (len(scene.receiver.requests), said) == (2, [])

    run(scenario())


def test_a_damaged_list_stops_no_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    run(world.bucket.put(outbox_file(world.pipeline).key, b"{"))
    commit = world.commit("fine")
    run(world.enqueue(commit))
    assert run(world.build()).outcome == "built"


@pytest.mark.parametrize("tries", [0, 21])
def test_a_number_of_tries_that_makes_no_sense_is_refused(tmp_path: Path, tries: int) -> None:
    text = World(tmp_path).description + f"alarms: {{tries: {tries}}}\n"
    with pytest.raises(InvalidInput, match=r"alarms\.tries"):
        parse_solver(text.encode(), Path("scripted.yaml"))
