"""Whether a run did something: a campaign in which nothing ran to an answer must not count."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from windlass_fuzz.buckets.layout import build_log_key
from windlass_fuzz.builds.build_cache import BuildCache
from windlass_fuzz.config.combinations import Combination, combinations_of
from windlass_fuzz.config.finding_settings import HealthSettings
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.engine import Statistics
from windlass_fuzz.findings.untriaged import Untriaged
from windlass_fuzz.reach.build_trial import coverage_trouble, production_trouble
from windlass_fuzz.roles.engine_factory import EngineFactory, fresh_folder
from windlass_fuzz.roles.seed_runs import SeedRuns
from windlass_fuzz.roles.seed_selection import find_tests
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state import rules
from windlass_fuzz.state.built_combinations import BuiltCombinations
from windlass_fuzz.state.documents import BadRuns, Health
from windlass_fuzz.state.pipeline import Pipeline

TESTS_TO_TRY: Final = 5
ENOUGH: Final = 100  # inputs that an engine made; fewer say nothing about it
TRIAL_MS: Final = 60_000
# a solver may allow hours per input; a builder does not wait that long
TRIAL_OF_ONE_MS: Final = 12_000
LOST: Final = "its build was deleted from the bucket; the manager queues the commit again"


def sickness_of(count: Statistics, settings: HealthSettings) -> str:
    """Returns what is wrong with a run; "" if it is healthy.

    Successful tests do not help if the engine made only refused inputs.
    """
    if count.coverage == 0 and not count.bugs:
        return "the build covers no code: is it built for this engine?"
    answered = count.executions - count.unsupported - count.timeouts - count.memory
    made, of_made = count.executions - count.tests, answered - count.tests_fine
    alive = made < ENOUGH or not settings.share or of_made > made * settings.share
    if count.executions and answered > count.executions * settings.share:
        return "" if alive else f"only {of_made} of the {made} inputs it made ran to an answer"
    how = [
        (count.unsupported, "refused"),
        (count.timeouts, "too slow"),
        (count.memory, "too large for the memory"),
    ]
    said = ", ".join(f"{number} {what}" for number, what in how if number)
    return f"only {answered} of {count.executions} executions ran to an answer ({said})"


async def record_health(
    pipeline: Pipeline, commit: str, why: str, settings: HealthSettings
) -> bool:
    """Counts an unhealthy run, or resets the count after a healthy one.

    Returns whether the build is now marked as bad; it then leaves the schedule and counts as
    failed.
    """
    now_ms = pipeline.now_ms()

    def change(health: Health) -> Health:
        return health._replace(commits=_counted(health.commits, commit, why, now_ms))

    if not why and commit not in (await pipeline.health.read()).commits:
        return False
    written = await pipeline.health.update(change)
    if not why or written.value.commits[commit].runs < settings.runs:
        return False
    await _add_to_log(pipeline, commit, f"{why}; after {settings.runs} such runs it is given up")
    await pipeline.queue.update(lambda queue: rules.mark_bad(queue, commit))
    await pipeline.schedule.update(lambda schedule: rules.drop_from_schedule(schedule, (commit,)))
    return True


async def _add_to_log(pipeline: Pipeline, commit: str, why: str) -> None:
    """Adds to the build log why a commit is in `failed`, since people look there."""
    key = build_log_key(pipeline.solver, commit)
    stored = await pipeline.bucket.get(key)
    text = b"" if stored is None else stored.body
    await pipeline.bucket.put(key, text + f"\nthe build is of no use: {why}\n".encode())


async def record_combination(pipeline: Pipeline, commit: str, name: str, why: str) -> None:
    """Counts an unhealthy run of a combination, or resets the count after a healthy one."""
    key = health_key(commit, name)
    now_ms = pipeline.now_ms()

    def change(health: Health) -> Health:
        return health._replace(combinations=_counted(health.combinations, key, why, now_ms))

    if why or key in (await pipeline.health.read()).combinations:
        await pipeline.health.update(change)


def _counted(
    known: Mapping[str, BadRuns], key: str, why: str, now_ms: int
) -> Mapping[str, BadRuns]:
    """Returns the counts with one more bad run of `key`; without a reason, with none."""
    rest = {other: bad for other, bad in known.items() if other != key}
    if not why:
        return rest
    before = known.get(key)
    return {**rest, key: BadRuns(1 if before is None else before.runs + 1, why, now_ms)}


async def combinations_ready(
    solver: Solver, pipeline: Pipeline, commit: str
) -> tuple[list[Combination], dict[str, str]]:
    """Returns the combinations of a commit that can run, and why others cannot.

    A combination whose last runs did nothing gets no more time for this commit.
    """
    known = combinations_of(solver)
    if solver.matrix is None:
        return list(known), {}
    made = await pipeline.built(commit)
    health = (await pipeline.health.read()).combinations
    reasons: dict[str, str] = {}
    for one in known:
        bad = health.get(health_key(commit, one.name))
        if one.name in made.lost:
            reasons[one.name] = LOST
        elif one.name not in made.built:
            reasons[one.name] = made.failed.get(one.name, "it was not built")
        elif bad is not None and bad.runs >= one.solver.health.runs:
            times = "run" if bad.runs == 1 else f"{bad.runs} runs"
            reasons[one.name] = f"its last {times} did nothing: {bad.why}"
    return [one for one in known if one.name not in reasons], reasons


async def waits_for_build(solver: Solver, pipeline: Pipeline, commit: str) -> bool:
    """Returns whether no combination can run, and one of them because its build was lost."""
    ready, reasons = await combinations_ready(solver, pipeline, commit)
    return not ready and LOST in reasons.values()


async def record_builds(pipeline: Pipeline, commit: str, made: BuiltCombinations) -> None:
    """Lists the combinations of a commit that could not be built, and unlists the others."""
    failed = {
        health_key(commit, name): BadRuns(0, why, pipeline.now_ms())
        for name, why in made.failed.items()
    }
    own = {health_key(commit, name) for name in (*made.built, *made.failed)}
    known = (await pipeline.health.read()).combinations
    if failed or own & known.keys():
        await pipeline.health.update(
            lambda health: health._replace(
                combinations={k: v for k, v in health.combinations.items() if k not in own} | failed
            )
        )


def health_key(commit: str, combination: str) -> str:
    """Returns the name of a combination of a commit in `health.json`."""
    return f"{commit}/{combination}"


async def alarm_about(
    commit: str, combination: Combination, pipeline: Pipeline, mirror: Mirror, work: Path
) -> str:
    """Tries the builds of a commit; returns a complaint if they do not start, answer no test, or
    cover no code.

    A test that is slower than the trial, but within its solver's limit, says nothing.
    """
    solver = combination.solver
    sources = work / "checkout"
    await mirror.checkout(commit, sources)
    tests = list(find_tests(sources, solver.tests).values())[:TESTS_TO_TRY]
    builds = BuildCache(pipeline, fresh_folder(work / "builds"), combination.name)
    build = await builds.fetch(commit)
    if not tests or build is None:
        return ""
    patience = min(TRIAL_OF_ONE_MS / solver.input_timeout_ms, 1.0)
    factory = EngineFactory(solver, pipeline, work, combination.env)
    engine = factory.engine(build.folder, patience)
    clock = pipeline.runtime.clock
    crashes, began = fresh_folder(work / "crashes"), clock.now_ms()
    count = await SeedRuns(engine, crashes, (), clock, began + TRIAL_MS).run(tests, 1)
    took_ms = (clock.now_ms() - began) // max(count.tests, 1)
    if patience < 1 and count.timeouts:
        return ""
    if not count.tests_fine and not count.bugs:
        if count.tests == 1:
            return "the new build does not answer the only test that was tried"
        return f"the new build answers none of the {count.tests} tests that were tried"
    scratch = fresh_folder(work / "trial")
    trouble = await production_trouble(engine, tests, scratch / "corpus", crashes, took_ms)
    await Untriaged(pipeline, combination.name).keep(commit, crashes)
    counting = await builds.fetch(commit, "coverage") if solver.health.coverage else None
    if trouble or counting is None:
        return trouble
    if combination.name and not (counting.folder / combination.program).exists():
        return ""  # a target need not be in the coverage build
    return await coverage_trouble(solver, counting, tests, scratch / "coverage", clock)


async def raise_alarm(pipeline: Pipeline, commit: str, why: str, combination: str = "") -> None:
    """Marks a commit, or one combination of it, as unhealthy until one of its runs is healthy."""
    alarm = BadRuns(0, why, pipeline.now_ms())
    if combination:
        key = health_key(commit, combination)
        await pipeline.health.update(
            lambda health: health._replace(combinations={**health.combinations, key: alarm})
        )
        return
    await pipeline.health.update(
        lambda health: health._replace(commits={**health.commits, commit: alarm})
    )


async def end_alarm(pipeline: Pipeline, commit: str) -> None:
    """Withdraws the alarm about an earlier build of a commit; alarms about runs stay."""
    alarm = (await pipeline.health.read()).commits.get(commit)
    if alarm is not None and alarm.runs == 0:
        await record_health(pipeline, commit, "", HealthSettings())
