"""One installation for all examples: PostgreSQL, `windlass up` with a worker."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.postgres import PostgresServer

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 30
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextmanager
def program(
    words: Sequence[str], environment: Mapping[str, str], ready: str
) -> Iterator[list[str]]:
    """Runs a Python program until the block ends; gives what it said until it was ready."""
    with subprocess.Popen(
        [sys.executable, *words], env=environment, cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said: list[str] = []
        try:
            for line in process.stdout:
                said.append(line)
                if ready in line:
                    break
            else:
                raise AssertionError(f"{words} ended: {''.join(said)}")
            yield said
        finally:
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=STOP_SECONDS)
            sys.stdout.write(rest)  # for a test that fails


@contextmanager
def web(words: Sequence[str], environment: Mapping[str, str], ready: str) -> Iterator[httpx.Client]:
    """Runs a web application and gives a client of it."""
    with program(words, environment, ready) as said:
        found = ADDRESS.findall(said[-1])
        assert found, said
        with httpx.Client(base_url=found[-1], timeout=30, trust_env=False) as client:
            yield client


@pytest.fixture(scope="package")
def environment(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The environment of applications beside an installation that runs."""
    dsn = postgres_server.create_database()
    data = tmp_path_factory.mktemp("data")
    variables = {
        **os.environ,
        "DATABASE_URL": dsn,
        "WINDLASS_DATA": str(data),
        "WINDLASS_SECRET_DATABASE_URL": dsn,
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "examples.django_app.settings",
    }
    upgrade = [sys.executable, "-m", "windlass", "db", "upgrade", "--store", dsn]
    subprocess.run(upgrade, env=variables, cwd=ROOT, check=True, capture_output=True)
    up = ["-m", "windlass", "up", "--port", "0", "--workers", "1", "--slots", "2", "--store", dsn]
    up += ["--import", "windlass.contrib.django.tasks"]
    up += ["--pass-env", "DJANGO_*", "--pass-env", "DATABASE_URL"]
    with program(up, variables, "try:"):
        yield variables
    postgres_server.drop_database(dsn)
