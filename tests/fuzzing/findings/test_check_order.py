"""In which order known findings are checked when there is not time for all of their inputs."""

from pathlib import Path
from typing import Any

from tests.fuzzing.support.scripted_solver import World
from tests.fuzzing.trackers.servers import a_finding
from tests.support.running import run
from windlass_fuzz.engines.engine import Verdict
from windlass_fuzz.findings.judge import Judge
from windlass_fuzz.findings.known import TRIES, Catalogue, KnownFindings
from windlass_fuzz.findings.record import KeptInput
from windlass_fuzz.findings.store import FindingStore

RUN_MS = 10_000
COMMIT = "d" * 40


class Slow:
    """An engine whose runs all fail, and take their time."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def classify(self, _path: Path) -> Verdict:
        self._world.clock.ahead_ms += RUN_MS
        return Verdict("bug", "a bug", source="stack")


class Bisecting:
    """Stands for searches, which this does not need."""


def test_a_bug_with_many_inputs_leaves_time_for_the_others(tmp_path: Path) -> None:
    world = World(tmp_path)
    store, engine = FindingStore(world.pipeline), Slow(world)
    findings: dict[str, Any] = {}

    async def work() -> list[str]:
        for key, count in (("a" * 16, 5), ("b" * 16, 1)):
            names = [await store.put_input(key, f"{key}{n}".encode(), "") for n in range(count)]
            kept = [
                KeptInput(name=name, size=1, title="a bug", found_in="c" * 40, shown=5, tried=5)
                for name in names
            ]
            finding = a_finding(key=key, title="a bug", inputs=kept, input=names[0])
            findings[key] = await store.update(key, lambda _, one=finding: one)  # type: ignore[misc]
        judge = Judge(engine, frozenset({"crash"}), lambda _: engine)  # type: ignore[arg-type, return-value]
        bisector: Any = Bisecting()
        deadline = world.clock.now_ms() + 2 * TRIES * RUN_MS
        known = KnownFindings(
            judge, bisector, store, world.work("known"), world.clock, deadline,
            catalogue=Catalogue(findings),
        )  # fmt: skip
        await known.check(COMMIT, world.work("crashes"))
        return [
            one.key[0] for one in findings.values() for kept in one.inputs
            if kept.checked_in == COMMIT
        ]  # fmt: skip

    assert run(work()) == ["a", "b"]
