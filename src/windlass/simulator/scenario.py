"""What one seed draws: the fleet, the work, the faults and their rates."""

import random

from msgspec import Struct

from windlass.domain.matching.indices import indices_key
from windlass.simulator.jobs import Traits
from windlass.simulator.network import Weather
from windlass.simulator.stores import StoreFaults, StoreKind


class Scenario(Struct, frozen=True, kw_only=True):
    """One run, before it begins."""

    store: StoreKind
    engines: int
    workers: tuple[Traits, ...]
    clients: int
    jobs: int
    retrying: bool  # somebody retries by hand what fails
    trouble_ms: int  # how long faults go on
    weather: Weather
    store_faults: StoreFaults
    worker_troubles: int  # crashes, pauses, drains
    server_crashes: int
    partitions: int
    outage: bool  # no server for longer than a lease
    slow_operator: bool  # what waits for one is blocked for more than an hour
    durable: float = 0.0  # how many jobs have steps and waits, or conditions


def draw(seed: int, jobs: int | None = None) -> Scenario:
    """Returns the scenario of a seed; `jobs` overrides how many are submitted."""
    # A generator of its own, so that a change of the fleet does not change the weather.
    # Repeatable on purpose: nothing in a simulation is secret.
    chance = random.Random(f"scenario {seed}")  # nosec B311
    store: StoreKind = "sqlite" if chance.random() < 0.35 else "memory"
    engines = 1 if store == "sqlite" else chance.choice((1, 2, 2))
    return Scenario(
        store=store,
        engines=engines,
        workers=_fleet(chance),
        clients=chance.randint(1, 2),
        jobs=jobs or chance.randint(20, 60),
        retrying=chance.random() < 0.4,
        trouble_ms=chance.randint(25_000, 70_000),
        weather=_weather(chance),
        store_faults=_store_faults(chance),
        worker_troubles=chance.randint(0, 5),
        server_crashes=chance.choice((0, 0, 1, 2)),
        partitions=chance.choice((0, 0, 1, 2)),
        outage=chance.random() < 0.15,
        slow_operator=chance.random() < 0.02,
        durable=chance.choice((0.0, 0.3, 0.6)),
    )


def _rate(chance: random.Random, most: float) -> float:
    return chance.choice((0.0, most / 5, most))


def _weather(chance: random.Random) -> Weather:
    return Weather(
        lost=_rate(chance, 0.10),
        reply_lost=_rate(chance, 0.15),
        doubled=_rate(chance, 0.20),
        late=_rate(chance, 0.10),
        late_ms=chance.choice((1_000, 8_000, 40_000)),
        delay_ms=chance.choice((5, 50, 300)),
        hang_up_unnoticed=chance.choice((0.0, 0.3, 1.0)),
    )


def _store_faults(chance: random.Random) -> StoreFaults:
    return StoreFaults(
        fails_before=_rate(chance, 0.05),
        fails_after=_rate(chance, 0.05),
        dies_after=_rate(chance, 0.005),
        loses_news=_rate(chance, 0.5),
        latency_ms=chance.choice((0, 0, 5, 40)),
    )


def _fleet(chance: random.Random) -> tuple[Traits, ...]:
    workers = []
    for number in range(chance.randint(2, 4)):
        cpus = chance.randint(2, 4)
        metadata: dict[str, object] = {"os": "linux", "system:cpus": cpus}
        metadata[indices_key("cpus")] = [str(cpu) for cpu in range(cpus)]
        if number == 0 or chance.random() < 0.4:
            metadata["gpu"] = True  # the first can run everything
        if number and chance.random() < 0.3:
            metadata["tasks_denylist"] = ["test"]
        workers.append(
            Traits(
                name=f"worker-{number + 1}",
                slots=chance.randint(1, 3),
                metadata=metadata,
                careful=chance.choice((False, False, True, True)),
                declines=_rate(chance, 0.1),
                fails=_rate(chance, 0.3),
                forgets_timeouts=_rate(chance, 0.5),
                dies_with_job=_rate(chance, 0.02),
            )
        )
    return tuple(workers)
