"""Spot machines: the script that starts a worker asks it to end when the machine is to be taken."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.providers.orders import order
from windlass.domain.pools.pools import Pool
from windlass.providers import ec2
from windlass.providers.ec2 import Ec2Provider

LIMIT_S = 60
SIGTERM_CODE = -15
TOKEN = "token-1"


class Metadata:
    """The metadata service of a machine, second version: a token first, then answers."""

    def __init__(self) -> None:
        self.warned = False
        self.asked = asyncio.Event()

    async def give_token(self, request: web.Request) -> web.Response:
        lives = request.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
        return web.Response(status=200 if lives else 400, text=TOKEN)

    async def tell(self, request: web.Request) -> web.Response:
        if request.headers.get("X-aws-ec2-metadata-token") != TOKEN:
            return web.Response(status=401)
        if self.warned:
            return web.json_response({"action": "terminate", "time": "2026-11-15T12:02:00Z"})
        self.asked.set()
        return web.Response(status=404)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Its address."""
        app = web.Application()
        app.router.add_put("/latest/api/token", self.give_token)
        app.router.add_get("/latest/meta-data/spot/instance-action", self.tell)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield "http://{}:{}".format(*runner.addresses[0][:2])
        finally:
            await runner.cleanup()


def script(spot: bool) -> str:
    """What such a machine is started with."""
    made = Ec2Provider(Pool(name="p", provider="ec2", options={"image": "ami-1", "setup": "true"}))
    return order(spot=spot).script(made._before(order(spot=spot)))


async def play(folder: Path) -> None:
    metadata = Metadata()
    async with metadata.serving() as address:
        path = f"{folder}:{os.environ['PATH']}"
        env = {"PATH": path, "AWS_EC2_METADATA_SERVICE_ENDPOINT": address}
        worker = await asyncio.create_subprocess_exec("sh", "-c", script(spot=True), env=env)
        try:
            await asyncio.wait_for(metadata.asked.wait(), LIMIT_S)
            assert worker.returncode is None, "there is no notice yet"
            metadata.warned = True
            assert await asyncio.wait_for(worker.wait(), LIMIT_S) == SIGTERM_CODE
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()


def test_a_worker_is_asked_to_end_when_its_machine_is_to_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ec2, "NOTICE_SECONDS", 0.1)
    program = tmp_path / "windlass"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    asyncio.run(play(tmp_path))


def test_ordinary_machines_do_not_look() -> None:
    assert "spot" not in script(spot=False)
    assert script(spot=False).splitlines()[:2] == ["#!/bin/sh", "true"]
