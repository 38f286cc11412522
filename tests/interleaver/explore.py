"""Runs a scene under many schedules and tells what went wrong, so that it can be repeated."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import NamedTuple

from tests.interleaver.checks import Result, complaints, complaints_in_the_end, result_of
from tests.interleaver.commands import Command
from tests.interleaver.schedules import Schedule, Seeded, Turns, one_break, two_breaks
from tests.interleaver.stage import Performance, Stage
from tests.interleaver.world import START_MS, World
from windlass.store.sql.snapshot import Snapshot

Setting = Callable[[World], Awaitable[None]]


class Scene(NamedTuple):
    """Commands that meet in a world.

    `serial`: the outcome equals that of one after another. That does not hold where a
    command passes over what another one holds, as claims do.
    """

    name: str
    setting: Setting
    commands: tuple[Command, ...]
    serial: bool = True


class Explorer:
    """Plays scenes on one stage; a setting that several scenes share is set once."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._setting: Setting | None = None
        self._world: World
        self._seen: list[Snapshot] = []
        self.runs = 0

    async def explore(self, scene: Scene, seeds: Iterable[int], thorough: bool = False) -> None:
        """Serial orders, one break everywhere, then the seeds; raise on the first complaint."""
        await self._set(scene.setting)
        serial = [await self._play(scene, schedule) for schedule in serial_orders(scene)]
        allowed = {result for _, result in serial} if scene.serial else set()
        for schedule in _schedules(serial[0][0], seeds, thorough):
            _, result = await self._play(scene, schedule)
            if allowed and result not in allowed:
                told = "\n".join(map(str, sorted(allowed)))
                raise AssertionError(
                    f"{scene.name} [{schedule}]: {result} is none of the serial ones:\n{told}"
                )

    async def draw(self, scene: Scene, seeds: Iterable[int], to_the_end: bool = True) -> None:
        """The seeds only, and with them what follows, or just the outcome."""
        await self._set(scene.setting)
        for seed in seeds:
            await self._play(scene, Seeded(seed), to_the_end)

    async def repeat(self, scene: Scene, schedule: Schedule) -> Performance:
        """One run."""
        await self._set(scene.setting)
        performance, _ = await self._play(scene, schedule)
        return performance

    async def _set(self, setting: Setting) -> None:
        if setting is self._setting:
            return
        self._setting = None
        self._seen.clear()
        self._world = World(self._stage)
        await self._stage.empty(START_MS)
        await setting(self._world)
        await self._stage.save()
        self._setting = setting

    async def _play(
        self, scene: Scene, schedule: Schedule, to_the_end: bool = True
    ) -> tuple[Performance, Result]:
        self.runs += 1
        steps = [command(self._world) for command in scene.commands]
        performance = await self._stage.perform(steps, schedule)
        outcome = await self._stage.store.snapshot()
        found = await complaints(self._stage, performance, outcome)
        # What follows from an outcome has to be seen once only.
        if to_the_end and not found and outcome not in self._seen:
            self._seen.append(outcome)
            found = await complaints_in_the_end(self._stage)
        if found:
            again = f'make interleave ARGS=\'--scene "{scene.name}" --schedule "{schedule}"\''
            told = [f"{scene.name} [{schedule}]", *found, " ".join(performance.trace), again]
            raise AssertionError("\n".join(told))
        return performance, result_of(performance, outcome)


def serial_orders(scene: Scene) -> list[Schedule]:
    """Each command first, the others behind it."""
    if len(scene.commands) == 2:
        return [Turns("a b"), Turns("b a")]
    orders = ("a b c", "a c b", "b a c", "b c a", "c a b", "c b a")
    return [Turns(order) for order in orders]


def _schedules(serial: Performance, seeds: Iterable[int], thorough: bool) -> Iterator[Schedule]:
    if len(serial.played) == 2:
        statements = [
            [step.split(":")[1] for step in serial.trace if step[0] == name] for name in "ab"
        ]
        yield from one_break(*statements)
        if thorough:
            yield from two_breaks(*statements)
    for seed in seeds:
        yield Seeded(seed)
