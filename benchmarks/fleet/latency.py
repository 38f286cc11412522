"""Section: from submitting a job to its first line, on an idle system; medians and p99 in ms.

A job begins by saying so to whoever submitted it (`functions.start`, or the same as a task
of the peer), so no system has to keep a result. Contenders take turns in rounds.
"""

import functools
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from statistics import median

from msgspec.structs import replace

import windlass
from benchmarks.fleet import functions
from benchmarks.fleet.beacon import REST_SECONDS, Beacon
from benchmarks.fleet.beside_store import direct_on_postgres
from benchmarks.fleet.processes import server, worker
from benchmarks.options import Options
from benchmarks.peers import huey_peer, pgqueuer_latency, redis_server
from benchmarks.report import Row
from tests.support.postgres import start_postgres
from windlass.client.blocking.client import Client
from windlass.messages.system import Health

NAME = "submit → start"
OF_HUEY = 1.5
OF_PGQUEUER = 1.0
OF_HEALTHZ = 5.0
P99_OF_MEDIAN = 2.0
SLOTS = 8

Submit = Callable[[str, int], object]
Sample = Callable[[], float]  # milliseconds
Found = Mapping[str, list[list[float]]]  # the samples of each round


def run(options: Options) -> list[Row]:
    """Three comparisons, each in rounds of its own."""
    return [*_over_http(options), *_embedded(options), *_direct(options)]


def _over_http(options: Options) -> list[Row]:
    folder = options.folder / "http"
    with ExitStack() as stack:
        running = stack.enter_context(server(folder))
        stack.enter_context(worker(running, "w1", SLOTS))
        client = stack.enter_context(running.client())
        beacon = stack.enter_context(Beacon(folder))
        found = _alternate(
            options,
            {
                "HTTP": lambda: beacon.latency(_submit_to(client)),
                "GET /healthz": lambda: _round_trip(client),
            },
        )
    return _rows(found, "HTTP", "GET /healthz", OF_HEALTHZ)


def _embedded(options: Options) -> list[Row]:
    missing = redis_server.missing()
    if missing:
        print(f"without huey on Redis: {missing}")
    folder = options.folder / "embedded"
    folder.mkdir()
    with ExitStack() as stack:
        beacon = stack.enter_context(Beacon(folder))
        client = stack.enter_context(windlass.Client.embedded(folder / "jobs.db", workers=SLOTS))
        contenders = {"embedded": _submit_to(client)}
        if not missing:
            url = stack.enter_context(redis_server.redis_server(folder / "redis"))
            contenders["huey, Redis"] = stack.enter_context(huey_peer.consumer(url, folder))
        found = _alternate(options, _samples(beacon, contenders))
    return _rows(found, "embedded", "huey, Redis", OF_HUEY)


def _direct(options: Options) -> list[Row]:
    folder = options.folder / "direct"
    folder.mkdir()
    postgres = start_postgres(durable=True)
    try:
        with ExitStack() as stack:
            beacon = stack.enter_context(Beacon(folder))
            ours = direct_on_postgres(postgres.create_database(), folder, 1, SLOTS)
            theirs = pgqueuer_latency.consumer(postgres.create_database(), folder)
            contenders: dict[str, Submit] = {
                "direct, PostgreSQL": stack.enter_context(ours).submitter(functions.start_async),
                "pgqueuer": stack.enter_context(theirs),
            }
            found = _alternate(options, _samples(beacon, contenders))
    finally:
        postgres.stop()
    return _rows(found, "direct, PostgreSQL", "pgqueuer", OF_PGQUEUER)


def _submit_to(client: Client) -> Submit:
    return lambda address, number: client.submit(functions.start, address, number)


def _round_trip(client: Client) -> float:
    """Milliseconds for asking the server whether it is alive, by the same client."""
    began = time.perf_counter()
    client.run(client.asynchronous.transport.call("GET", "/healthz", Health))
    took = (time.perf_counter() - began) * 1000
    time.sleep(REST_SECONDS)
    return took


def _samples(beacon: Beacon, contenders: Mapping[str, Submit]) -> dict[str, Sample]:
    return {name: functools.partial(beacon.latency, submit) for name, submit in contenders.items()}


def _alternate(options: Options, contenders: Mapping[str, Sample]) -> Found:
    """The samples of all rounds; each contender has a turn in each round."""
    times = options.pick(40, 5)
    for sample in contenders.values():
        for _ in range(times):  # to warm up: connections, processes, imports
            sample()
    found: dict[str, list[list[float]]] = {name: [] for name in contenders}
    for _ in range(options.pick(5, 2)):
        for name, sample in contenders.items():
            found[name].append([sample() for _ in range(times)])
    return found


def _rows(found: Found, ours: str, theirs: str, most: float) -> list[Row]:
    rows = []
    medians = {name: [median(times) for times in rounds] for name, rounds in found.items()}
    for name, rounds in medians.items():
        row = Row(section=NAME, name=name, value=median(rounds), unit="ms", samples=rounds)
        if name == ours and theirs in medians:
            ratio = median(m / i for m, i in zip(rounds, medians[theirs], strict=True))
            row = replace(
                row, ratio=ratio, beside=theirs, target=f"≤ {most:.2f}", met=ratio <= most
            )
        rows.append(row)
    return [*rows, *(_p99(name, rounds, name == ours) for name, rounds in found.items())]


def _p99(name: str, rounds: list[list[float]], is_ours: bool) -> Row:
    """The slowest percent of all samples begins here, beside their median."""
    times = sorted(time for one in rounds for time in one)
    value = times[len(times) * 99 // 100]
    ratio = value / median(times)
    row = Row(section=NAME, name=f"{name}, p99", value=value, unit="ms", ratio=ratio,
              beside="its median")  # fmt: skip
    met = ratio <= P99_OF_MEDIAN
    return replace(row, target=f"≤ {P99_OF_MEDIAN:.2f}", met=met) if is_ours else row
