"""Starts the whole shop here: PostgreSQL, Windlass with a worker, and the application."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.postgres import start_postgres

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 30


def main(words: Sequence[str] | None = None) -> None:
    """Starts everything, says where it is, and stops it on SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m examples.webapp", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the application; 0: any")
    port: int = parser.parse_args(words).port
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="windlass-webapp-") as folder:
        database = start_postgres(durable=False)
        running: list[subprocess.Popen[str]] = []
        try:
            run_shop(database.dsn(), Path(folder), port, running)
        except KeyboardInterrupt:
            pass
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait(STOP_SECONDS)
            database.stop()


def run_shop(dsn: str, folder: Path, port: int, running: list[subprocess.Popen[str]]) -> None:
    """Starts the processes in order, and waits for the application."""
    environment = {
        **os.environ,
        "DATABASE_URL": dsn,
        "WINDLASS_DATA": str(folder),
        "WINDLASS_SECRET_DATABASE_URL": dsn,  # the worker's: jobs name it, and only they get it
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }
    windlass = [sys.executable, "-m", "windlass"]
    upgrade = [*windlass, "db", "upgrade", "--store", dsn]
    subprocess.run(upgrade, env=environment, check=True, stdout=subprocess.DEVNULL)
    up = [*windlass, "up", "--port", "0", "--workers", "1", "--slots", "2", "--store", dsn]
    running.append(start(up, environment, "try:"))
    serve = [sys.executable, "-m", "uvicorn", "examples.webapp.app:app", "--port", str(port)]
    running.append(start(serve, environment, "Uvicorn running on"))
    running[-1].wait()


def start(
    command: Sequence[str], environment: Mapping[str, str], ready: str
) -> subprocess.Popen[str]:
    """Starts a program and shows what it says until it is ready."""
    process = subprocess.Popen(
        command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        if ready in line:
            return process
    raise SystemExit(f"{command[2]} ended before it was ready")


if __name__ == "__main__":
    main()
