"""How much CPU a PostgreSQL server has used, with all its processes."""

import os
from pathlib import Path

import asyncpg

TICKS = os.sysconf("SC_CLK_TCK")


async def postmaster(dsn: str) -> int:
    """The process that all others of this server come from."""
    connection = await asyncpg.connect(dsn)
    backend: int = await connection.fetchval("SELECT pg_backend_pid()")
    parent = _parent(backend)
    await connection.close()
    return parent


def server_cpu_seconds(parent: int) -> float:
    """Of the server and its children, also those that have ended."""
    ticks = sum(map(int, _fields(parent)[11:15]))
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = _fields(int(folder.name))
            except OSError:  # it has just ended
                continue
            if int(fields[1]) == parent:
                ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS


def _parent(process: int) -> int:
    return int(_fields(process)[1])


def _fields(process: int) -> list[str]:
    """The fields of /proc/…/stat that follow the name, which may hold spaces."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
