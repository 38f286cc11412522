"""Machines from two programs of the user: one starts a machine, the other stops it.

`launch` gets the worker's settings in its environment and the script that starts the worker on
standard input; it prints the machine's name. `terminate` gets that name as its last argument.
`list`, if given, prints a line `TOKEN NAME` for each machine. Without it, a machine is assumed to
exist until it is terminated, and lost machines are not found.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence

from windlass.domain.pools.pools import Pool
from windlass.ports.programs import start_program
from windlass.ports.provider import Machine, Order, Owner, ProviderFault
from windlass.providers.options import Options

SHOWN = 300  # characters of its error output


async def run(
    words: Sequence[str],
    *,
    given: str = "",
    env: Mapping[str, str] | None = None,
    accept: Sequence[int] = (0,),
) -> str:
    """Returns the program's output; raises `ProviderFault` for any other exit code."""
    try:
        process = await start_program(
            *words,
            stdin=asyncio.subprocess.PIPE if given else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=None if env is None else dict(env),
            start_new_session=True,
        )
    except OSError as error:
        raise ProviderFault(f"cannot run {words[0]}: {error.strerror}") from None
    try:
        _, (out, err) = await asyncio.gather(_feed(process, given), process.communicate())
    except asyncio.CancelledError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode not in accept:
        output = (err or out).decode(errors="replace").strip()[-SHOWN:]
        raise ProviderFault(f"{words[0]} ended with {process.returncode}: {output or 'no message'}")
    return out.decode(errors="replace")


async def _feed(process: asyncio.subprocess.Process, given: str) -> None:
    """Writes the program's input; if it exits without reading it, its exit code decides."""
    if process.stdin is None:
        return
    # Event loops report a closed pipe in different ways.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
        process.stdin.write(given.encode())
        await process.stdin.drain()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
        process.stdin.close()


class CommandProvider:
    """Runs the programs from the pool's options. Launching a token twice must give one machine."""

    settle_ms = 10_000
    host = ""

    def __init__(self, pool: Pool) -> None:
        options = Options(pool.options)
        self._launch = options.words("launch")
        self._terminate = options.words("terminate")
        self._list = options.words("list", ())
        options.done()

    async def launch(self, order: Order) -> Machine:
        """Runs `launch`; for the same token, the program must print the same machine."""
        env = {**_base(order.owner), "WINDLASS_POOL_TOKEN": order.token, **order.environment()}
        output = (await run(self._launch, given=order.script(), env=env)).split()
        if not output:
            raise ProviderFault(f"{self._launch[0]} must print the machine's name, got nothing")
        return Machine(order.token, output[-1])

    async def find(self, owner: Owner) -> Sequence[Machine] | None:
        """Returns the machines that `list` prints."""
        if not self._list:
            return None
        found: list[Machine] = []
        for line in (await run(self._list, env=_base(owner))).splitlines():
            words = line.split()
            if len(words) == 2:
                found.append(Machine(words[0], words[1]))
            elif words:
                raise ProviderFault(f"{self._list[0]} must print TOKEN NAME, got {line[:100]!r}")
        return found

    async def terminate(self, machines: Sequence[Machine]) -> None:
        """Runs `terminate` for each machine."""
        for machine in machines:
            env = {**os.environ, "WINDLASS_POOL_TOKEN": machine.token}
            await run([*self._terminate, machine.id], env=_without_token(env))


def _base(owner: Owner) -> dict[str, str]:
    own = {**os.environ, "WINDLASS_POOL": owner.pool, "WINDLASS_INSTALLATION": owner.installation}
    return _without_token(own)


def _without_token(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name != "WINDLASS_TOKEN"}
