"""A real Prometheus on loopback, with rules whose times are shortened."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import yaml

from tests.support.debian import find_program
from tests.support.loopback import die_with_parent, free_port
from tests.support.waiting import until

EVERY = "250ms"  # scrapes and evaluations


class Prometheus:
    """What a running Prometheus knows."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def value(self, query: str) -> float | None:
        """The first value of a query, if it has one."""
        reply = await self._client.get("/api/v1/query", params={"query": query})
        found = reply.json()["data"]["result"]
        return float(found[0]["value"][1]) if found else None

    async def problem_of(self, query: str) -> str | None:
        """Why a query cannot be answered, if so."""
        reply = await self._client.get("/api/v1/query", params={"query": query})
        return None if reply.is_success else str(reply.json()["error"])

    async def firing(self) -> set[str]:
        """The alerts that fire now."""
        reply = await self._client.get("/api/v1/alerts")
        told = reply.json()["data"]["alerts"]
        return {one["labels"]["alertname"] for one in told if one["state"] == "firing"}

    async def fired(self, span: str) -> set[str]:
        """The alerts that have fired at any time of this span."""
        query = f'count_over_time(ALERTS{{alertstate="firing"}}[{span}])'
        reply = await self._client.get("/api/v1/query", params={"query": query})
        return {one["metric"]["alertname"] for one in reply.json()["data"]["result"]}

    async def unhealthy_rules(self) -> list[str]:
        """The rules that could not be evaluated."""
        groups = (await self._client.get("/api/v1/rules")).json()["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return [rule["name"] for rule in rules if rule["health"] == "err"]

    async def ready(self) -> bool:
        """Whether it answers."""
        try:
            return (await self._client.get("/-/ready")).status_code == 200
        except httpx.TransportError:
            return False


def shortened(text: str, replaced: Mapping[str, str]) -> str:
    """Rules with other times and thresholds; every piece to replace must be there."""
    for before, after in replaced.items():
        assert before in text, before
        text = text.replace(before, after)
    return text


@asynccontextmanager
async def running_prometheus(
    folder: Path, target: str, token: str, rules: str
) -> AsyncIterator[Prometheus]:
    """Scrapes one server with this token and evaluates these rules."""
    (folder / "rules.yml").write_text(rules)
    (folder / "token").write_text(token)
    scrape = {
        "job_name": "windlass",
        "authorization": {"credentials_file": str(folder / "token")},
        "static_configs": [{"targets": [target]}],
    }
    times = {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY}
    config = {"global": times, "rule_files": ["rules.yml"], "scrape_configs": [scrape]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        find_program("prometheus") or "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
        preexec_fn=die_with_parent,
    )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            prometheus = Prometheus(client)
            await until("Prometheus answers", prometheus.ready, 60)
            yield prometheus
    finally:
        process.kill()
        await process.wait()
