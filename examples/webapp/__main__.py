"""Starts the whole shop here: PostgreSQL, Windlass with a worker, and the application."""

import argparse
import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.support.postgres import start_postgres

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 10
JSON = "-H 'content-type: application/json'"
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")

HINTS = """
the shop is open at {shop}; its routes: {shop}/docs
  place an order:  curl {shop}/orders {json} -d '{{"reference": "A-1", "amount": 5}}'
  look at it:      curl {shop}/orders/1
  pack it:         curl {shop}/orders/1/packed {json} -d '{{"parcel": "P-1"}}'
  see its job:     {windlass} jobs --data {data}
Ctrl-C stops everything.
"""


def main(words: Sequence[str] | None = None) -> None:
    """Starts everything, says where it is, and stops it on SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m examples.webapp", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the application; 0: any")
    port: int = parser.parse_args(words).port
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="windlass-webapp-") as folder:
        database = start_postgres(durable=False)
        try:
            environment = environment_of(database.dsn(), folder)
            upgrade = [sys.executable, "-m", "windlass", "db", "upgrade", "--store", database.dsn()]
            subprocess.run(upgrade, env=environment, check=True, stdout=subprocess.DEVNULL)
            asyncio.run(run_shop(environment, port))
        except KeyboardInterrupt:
            pass
        finally:
            database.stop()


def environment_of(dsn: str, folder: str) -> dict[str, str]:
    """Returns the environment of all programs."""
    return {
        **os.environ,
        "DATABASE_URL": dsn,
        "WINDLASS_DATA": folder,
        "WINDLASS_SECRET_DATABASE_URL": dsn,  # the worker's: jobs name it, and only they get it
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }


async def run_shop(environment: Mapping[str, str], port: int) -> None:
    """Starts the processes in order, and waits until one of them ends or we are told to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    up = ["-m", "windlass", "up", "--port", "0", "--workers", "1", "--slots", "2"]
    up += ["--store", environment["DATABASE_URL"], "--log-format", "plain"]
    serve = ["-m", "uvicorn", "examples.webapp.app:app", "--port", str(port)]
    async with contextlib.AsyncExitStack() as running:
        queue = await running.enter_async_context(Program(up, environment, "try: "))
        await queue.is_ready()
        shop = await running.enter_async_context(Program(serve, environment, "Uvicorn running on"))
        address = ADDRESS.findall(await shop.is_ready())[0]
        sys.stdout.write(hints(address, environment["WINDLASS_DATA"]))
        sys.stdout.flush()
        ends = [asyncio.create_task(one) for one in (stopped.wait(), queue.ended(), shop.ended())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.is_set():
            raise SystemExit("the shop closes: one of its programs has ended")


def hints(address: str, data: str) -> str:
    """Returns what one can do now."""
    windlass = Path(sys.executable).with_name("windlass")
    return HINTS.format(shop=address, json=JSON, windlass=windlass, data=data)


class Program:
    """A Python program while a block runs; what it says is shown to its end."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str], ready: str) -> None:
        self._words = words
        self._environment = environment
        self._ready = ready
        self._said: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> Self:
        self._process: Process = await asyncio.create_subprocess_exec(
            sys.executable, *self._words, env=self._environment, cwd=ROOT, stdout=PIPE,
            stderr=STDOUT,
        )  # fmt: skip
        self._reading = asyncio.create_task(self._read())
        return self

    async def _read(self) -> None:
        """Shows all output: a program whose output nobody reads stops when the pipe is full."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode(errors="replace")
            sys.stdout.write(text)
            sys.stdout.flush()
            if self._ready in text and not self._said.done():
                self._said.set_result(text)
        if not self._said.done():
            self._said.set_result("")

    async def is_ready(self) -> str:
        """Returns the line that says so."""
        if not (line := await self._said):
            raise SystemExit(f"{self._words[1]} ended before it was ready")
        return line

    async def ended(self) -> None:
        """Waits until the program has ended."""
        await self._process.wait()

    async def __aexit__(self, *_: object) -> None:
        while self._process.returncode is None:
            # Asked again, `windlass up` does not wait for its jobs any more.
            self._process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        await self._reading


if __name__ == "__main__":
    main()
