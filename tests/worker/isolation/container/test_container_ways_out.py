"""A job in a container of an ordinary user tries every way out, beside another one."""

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.containers import RootlessPodman, python_archive
from tests.worker.isolation.ways import DEPENDS, WAYS
from tests.worker.rig import Rig, guard_of, play
from windlass.worker.keeper.processes import all_processes, arguments_of, children_of

HERE: Final = Path(__file__).parents[1]
IMAGE: Final = "localhost/windlass-python:1"
OPTIONS: Final[dict[str, Any]] = {"image": IMAGE, "network": "host", "retries": 0}
# It may change the copies of its container, and the machine's must stay as they are.
COPIES: Final = {"system_file": Path("/etc/passwd"), "system_folder": Path("/usr/local")}
PYTHON: Final = str(Path(sys.executable).resolve())
PATIENCE_S: Final = 120


def _place(podman: RootlessPodman) -> Path:
    place = podman.give(Path(tempfile.mkdtemp(dir=podman.folder)))
    for name in ("data", "home", "open"):
        (place / name).mkdir()
        podman.give(place / name)
    for secret in ("data/admin-token", "home/key"):
        (place / secret).write_text("secret")
        podman.give(place / secret).chmod(0o600)
    return place


@asynccontextmanager
async def _agent(rig: Rig, podman: RootlessPodman) -> AsyncIterator[int]:
    words = [sys.executable, "-m", "tests.worker.isolation.agent", str(rig.bridge.path)]
    words += [str(rig.folder / "data/w"), str(rig.folder / "data"), "container"]
    process = await asyncio.create_subprocess_exec(*podman.command(words), env=podman.env)
    try:
        yield process.pid
        process.terminate()
        await asyncio.wait_for(process.wait(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _program_with(word: str) -> int:
    """The pid of the Python in a container that has this among its words."""
    (pid,) = (
        seen.pid
        for seen in all_processes()
        if (words := arguments_of(seen.pid))
        and words[0].decode() == PYTHON
        and any(word.encode() in one for one in words)
    )
    return pid


async def _tried(rig: Rig, podman: RootlessPodman) -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with _agent(rig, podman) as agent:
            told: dict[str, Any] = {
                "agent": agent, "state": str(rig.folder / "data/w"),
                "data": str(rig.folder / "data"), "home": str(rig.folder / "home"),
                "tmp": str(rig.folder / "open"), "abstract": f"windlass-{os.getpid()}-container",
                "salt": os.getpid() * 4 + 2, "port": server.getsockname()[1],
                "ways": [way.name for way in WAYS],
            }  # fmt: skip
            source = (HERE / "victim.py").read_text()
            victim = await rig.submit(PYTHON, "-S", "-c", source, json.dumps(told), **OPTIONS)
            assert await rig.files.log_line(victim) == ["/scratch"]
            (private,) = (rig.folder / "data/w/scratch").glob("*/private")
            guard = guard_of(agent)
            told["victim_job"] = victim
            told |= {"scratch": str(private.parent), "victim": _program_with(told["abstract"])}
            told["keeper"] = children_of(guard)[0]
            sleep = podman.command(["sleep", "99"])
            bystander = await asyncio.create_subprocess_exec(*sleep, env=podman.env)
            told["bystander"] = bystander.pid
            source = (HERE / "escape.py").read_text()
            job = await rig.submit(PYTHON, "-S", "-c", source, json.dumps(told), **OPTIONS)
            await rig.ended(job)
            bystander.kill()
            await bystander.wait()
            line = (await rig.files.log_end(job)).decode()
            found: dict[str, str] = json.loads(line)
            mark = f"sleep-{told['salt']}".encode()
            words = [arguments_of(one.pid) for one in all_processes()]
            if not any(one[0].endswith(mark) for one in words if one):
                found["daemon"] = found["other_daemon"] = "stopped: it has ended"
            await rig.engine.jobs.cancel([victim])
            await rig.ended(victim)
            return found


def test_a_job_in_a_container_gets_out_only_where_the_table_says_so(
    podman: RootlessPodman,
) -> None:
    podman.import_image(python_archive(), IMAGE)
    before = {name: path.stat().st_mtime_ns for name, path in COPIES.items()}
    results: dict[str, str] = {}

    async def scene(rig: Rig) -> None:
        results.update(await _tried(rig, podman))

    play(_place(podman), scene)
    for name, path in COPIES.items():
        if path.stat().st_mtime_ns == before[name]:
            results[name] = "stopped: it was a copy"
    wrong = [
        f"{way.name}: expected {way.container}, got {results[way.name]}"
        for way in WAYS
        if way.container not in (DEPENDS, results[way.name].partition(":")[0])
    ]
    assert not wrong, "\n".join(wrong)
    assert len(results) >= 30
