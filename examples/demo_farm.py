"""What `make demo ARGS=--stay` leaves running: a farm with a past, and with work in every state.

Nothing here is made up: every job, question, schedule and machine that the dashboard shows is real.
"""

import random
from pathlib import Path
from typing import Any, Final

from examples.demo_tasks import approve_release, paint_log, resize, train
from windlass.client.blocking.client import Client
from windlass.domain.job.job import JobSpec
from windlass.tasks.task import named

ROOT: Final = Path(__file__).parent.parent
PAUSE_SECONDS: Final = 2.0  # between two waves of new work
TITLES: Final = ("lint", "unit tests", "integration tests", "docs", "package")


def shell(name: str, script: str, **options: Any) -> JobSpec:
    """A job that runs a line of shell."""
    return named("shell").options(name=name, **options).job(argv=["sh", "-c", script])


def fill(client: Client) -> None:
    """Leaves something to see in every view."""
    _plans(client)
    _workflows(client)
    _waiting(client)
    _fleet(client)
    _access(client)
    client.submit_many(
        [
            train.options(name="train a model", queue="gpu").job(600),
            paint_log.options(name="a colourful log").job(400),
            resize.options(name="thumbnails").job("holiday"),
            approve_release.options(name="release 2.0").job("2.0"),
            shell("crashes", "echo about to crash >&2; kill -SEGV $$"),
            shell("exits with 3", "echo no such suite; exit 3", labels={"team": "qa"}),
            shell("too slow", "sleep 30", timeout="1s"),
            shell("other team", "echo hello from another namespace", namespace="media"),
        ]
    )
    canceled = client.submit(shell("not needed any more", "sleep 600"))
    canceled.cancel("superseded by a newer commit")


def _plans(client: Client) -> None:
    client.templates.put(
        "nightly",
        {
            "name": "nightly ${{ parameters.branch }}",
            "parameters": {"branch": {"type": "string", "default": "main"}},
            "jobs": {
                "build": {"run": "echo building ${{ parameters.branch }}"},
                "test": {"run": "echo testing", "after": ["build"]},
            },
        },
    )
    client.schedules.put("nightly", "30 2 * * *", template="nightly", zone="Europe/Berlin")
    client.schedules.put("heartbeat", "* * * * *", jobs=[shell("heartbeat", "date")])
    client.schedules.run("nightly")
    client.schedules.put("weekly report", "0 9 * * 1", jobs=[shell("report", "echo all is well")])
    client.schedules.pause("weekly report")


def _workflows(client: Client) -> None:
    """A build of many parts, one that waits for approval, one that failed."""
    with client.workflow("build all platforms") as flow:
        fetch = flow.submit(shell("fetch", "sleep 1; echo fetched"))
        ends = []
        for platform in ("linux", "macos", "windows"):
            built = [
                flow.submit(
                    shell(f"{platform}: compile part {n}", f"sleep 0.{n % 9 + 1}", after=fetch)
                )
                for n in range(12)
            ]
            ends.append(flow.submit(shell(f"{platform}: link", "sleep 1", after=built)))
        flow.submit(shell("publish", "echo published", after=ends))
    with client.workflow("deploy to production") as deploy:
        built = [deploy.submit(shell("build the image", "echo built"))]
        wait = deploy.submit(shell("roll out", "echo rolled out", after=built, unblock="manual"))
        deploy.submit(shell("smoke test", "echo all good", after=wait))
    with client.workflow("broken branch") as broken:
        first = broken.submit(shell("compile", "echo error: undefined symbol; exit 1"))
        broken.submit(shell("test", "echo never", after=first))


def _waiting(client: Client) -> None:
    """Jobs that wait, each for another reason."""
    client.queues.pause("archive")
    client.submit(shell("waits for its queue", "echo archived", queue="archive"))
    client.submit(shell("needs 8 TiB", "true", requires="memory>=8TiB"))
    client.submit(shell("starts tomorrow", "echo good morning", delay="1d"))
    client.queues.limit("database", max_running=1)
    client.submit_many(
        [shell(f"migrate shard {n}", "sleep 20", queue="database") for n in range(1, 6)]
    )
    newsletter = {"key": "newsletter", "max": 3, "per": "10m"}
    client.submit_many(
        [shell(f"newsletter {n}", "sleep 1", queue="mail", rate=newsletter) for n in range(1, 21)]
    )


def _access(client: Client) -> None:
    """Tokens of people and programs, one of which is not valid any more."""
    client.tokens.create("prometheus", "viewer")
    client.tokens.create("nightly builds", "submitter", namespaces=["default"], expires="90d")
    client.tokens.create("media team", "operator", namespaces=["media"])
    client.tokens.create("a former colleague", "operator")
    client.tokens.revoke("a former colleague")


def _fleet(client: Client) -> None:
    client.pools.apply(
        "spot",
        {
            "provider": "local",
            "target_latency_seconds": 20,
            "max_idle_seconds": 60,
            "max_workers": 2,
            "expected_seconds": 1,
            "hourly_price": 0.12,
        },
    )


class Traffic:
    """A little new work now and then, so that the page has something to show."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._chance = random.Random(7)

    def wave(self) -> None:
        """Submits one to three jobs; a few of all fail."""
        chance = self._chance
        jobs = [
            shell(
                chance.choice(TITLES),
                f"sleep {chance.uniform(0.05, 1.5):.2f}; exit {int(chance.random() < 0.07)}",
                queue=chance.choice(("default", "default", "ci", "media")),
                labels={"branch": chance.choice(("main", "main", "feature"))},
            )
            for _ in range(chance.randint(1, 3))
        ]
        self._client.submit_many(jobs)
