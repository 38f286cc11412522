"""The port for providers of machines.

Every machine carries the installation, the pool and its own token, as tags or in its name,
so that any server finds it again after a crash. Launching the same token twice gives one
machine.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import WindlassError


class ProviderFault(WindlassError):
    """A provider refused or could not be reached; it may have acted all the same."""

    code = "provider_fault"


class Owner(NamedTuple):
    """The installation and pool that machines belong to."""

    installation: str
    pool: str


class Order(NamedTuple):
    """One machine to start, and what its worker needs to come online."""

    owner: Owner
    token: str
    server: str
    code: str
    slots: int | None  # None: resources decide how many jobs run at once
    resources: Mapping[str, int]
    spot: bool = False

    def command(self) -> list[str]:
        """Returns the worker's command line; the code is in the environment, out of sight."""
        words = ["windlass", "worker", "--name", self.token]
        if self.slots is not None:
            words += ["--slots", str(self.slots)]
        if self.resources:
            amounts = (f"{name}={amount}" for name, amount in self.resources.items())
            words += ["--resources", ",".join(amounts)]
        return words

    def environment(self) -> dict[str, str]:
        """Returns the worker's environment variables."""
        return {"WINDLASS_SERVER": self.server, "WINDLASS_CODE": self.code}

    def script(self, setup: str = "") -> str:
        """Returns a shell script that runs `setup` and then becomes the worker."""
        lines = ["#!/bin/sh", *([setup.rstrip("\n")] if setup else [])]
        lines += [f"export {k}={shlex.quote(v)}" for k, v in self.environment().items()]
        return "\n".join([*lines, f"exec {shlex.join(self.command())}", ""])


class Machine(NamedTuple):
    """A machine that exists or is starting; `id` is the provider's name for it."""

    token: str
    id: str


class Provider(Protocol):
    """Starts, finds and stops machines. `settle_ms` is how long a new one may be missing in lists.

    If machines are visible only from their own host, `host` is the host of this server and
    ids begin with it (`host:…`); otherwise it is empty.
    """

    settle_ms: int
    host: str

    async def launch(self, order: Order) -> Machine:
        """Starts a machine unless one with this token exists. Raises `ProviderFault`."""

    async def find(self, owner: Owner) -> Sequence[Machine] | None:
        """Returns the owner's machines that have not ended; None if the provider cannot list them.

        Raises `ProviderFault`.
        """

    async def terminate(self, machines: Sequence[Machine]) -> None:
        """Stops these machines; ignores those that have ended. Raises `ProviderFault`."""


@runtime_checkable
class KnowsLastWords(Protocol):
    """A provider that can tell what a worker said before it ended."""

    def last_words(self, owner: Owner, token: str) -> str | None:
        """Returns the last line that the worker wrote, or None."""


class Providers(Protocol):
    """Creates the provider of a pool; raises `InvalidInput` for options that cannot work."""

    def __call__(self, pool: Pool) -> Provider: ...
