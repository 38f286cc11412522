"""Local pools with servers on several hosts: each sees the machines of its own host alone."""

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.cloud import Cloud, ServerKilledError, Sky
from tests.engine.support.rig import MINUTE, SECOND, Rig

TURN = 20 * SECOND  # after this long another server may have the turn

pytestmark = pytest.mark.parametrize("rig", ["memory", "postgres"], indirect=True)


class Two:
    """Servers on hosts a and b; the turn is with a until it is let pass."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.a = Sky(rig, Cloud(host="a"))
        self.b: Sky

    async def start(self, **fields: object) -> Agent:
        """A pool with one worker on host a, which is online."""
        self.b = Sky(self.rig, Cloud(host="b"), await self.rig.another_engine())
        await self.a.apply(min_workers=1, max_workers=1, **fields)
        await self.a.round()
        (agent,) = await self.a.boot()
        await self.a.round()
        assert await self.a.states() == ["online"]
        return agent

    async def pass_turn(self) -> None:
        """Let server b have the turn; on a store of one process it has it anyway."""
        await self.rig.advance(TURN)
        assert (await self.b.round()).pools == 1


async def test_workers_on_another_host_are_left_alone(rig: Rig) -> None:
    two = Two(rig)
    agent = await two.start()
    for _ in range(3):
        await two.pass_turn()
        await agent.sync()
    assert await two.b.states() == ["online"]
    assert two.b.cloud.machines == {}
    assert two.a.cloud.ended == two.b.cloud.ended == []


async def test_each_host_ends_its_own_whoever_decides(rig: Rig) -> None:
    two = Two(rig)
    await two.start(max_idle_seconds=10)
    await two.pass_turn()
    await two.b.apply(min_workers=0, max_idle_seconds=10)
    for _ in range(3):
        await two.b.round()
    assert await two.b.states() == ["terminating"]
    assert two.b.cloud.ended == [], "it is not seen from there"
    assert (await two.a.round()).terminated == 1
    assert two.a.cloud.machines == {}
    await two.a.round()
    assert await two.a.states() == []


async def test_a_machine_that_died_is_missed_by_its_own_host(rig: Rig) -> None:
    two = Two(rig)
    await two.start()
    await two.pass_turn()
    two.a.cloud.machines.clear()
    await two.a.round()
    assert "terminating" in await two.a.states()


async def test_workers_of_a_host_that_is_gone_are_replaced_on_another(rig: Rig) -> None:
    two = Two(rig)
    await two.start()
    await rig.end_grace()
    await rig.pass_time(5 * MINUTE)
    for _ in range(3):
        await two.b.round()
    assert await two.b.states() == ["starting"]
    assert len(two.b.cloud.machines) == 1
    assert two.b.cloud.ended == []
    # The host is back, and its server finds a process that nobody knows any more.
    assert (await two.a.round()).leaks == 1
    assert two.a.cloud.machines == {}
    assert len(two.b.cloud.machines) == 1


async def test_one_launched_twice_on_two_hosts_is_one_in_the_end(rig: Rig) -> None:
    """A server died after the call, before the record; a server elsewhere asked again."""
    two = Two(rig)
    two.b = Sky(rig, Cloud(host="b"), await rig.another_engine())
    await two.a.apply(min_workers=1, max_workers=1)
    two.a.cloud.kills = "after"
    with pytest.raises(ServerKilledError):
        await two.a.round()
    await rig.advance(2 * MINUTE)
    await two.b.round()
    assert set(two.a.cloud.machines) == set(two.b.cloud.machines) != set()
    assert await two.b.states() == ["starting"]
    await two.a.round()
    assert two.a.cloud.machines == {}, "the row says that it is on the other host"
    assert len(two.b.cloud.machines) == 1
    await two.b.boot()
    await two.b.round()
    assert await two.b.states() == ["online"]
