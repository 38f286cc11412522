"""What pools ask of a provider of machines.

Every machine carries the installation, the pool and a token of its own, as tags or in its
name, so that it is found again whatever became of the server that asked for it. A launch
is asked for once for each token; asked again, there is still one machine.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import WindlassError


class ProviderFault(WindlassError):
    """A provider refused, or could not be asked; it may have acted all the same."""

    code = "provider_fault"


class Owner(NamedTuple):
    """Whose machines are meant."""

    installation: str
    pool: str


class Order(NamedTuple):
    """One machine to be started, and what its worker needs to come online."""

    owner: Owner
    token: str
    server: str
    code: str
    slots: int | None  # None: the worker goes by its resources
    resources: Mapping[str, int]
    spot: bool = False

    def command(self) -> list[str]:
        """How its worker is started; the code goes by the environment, where few can see it."""
        words = ["windlass", "worker", "--name", self.token]
        if self.slots is not None:
            words += ["--slots", str(self.slots)]
        if self.resources:
            amounts = (f"{name}={amount}" for name, amount in self.resources.items())
            words += ["--resources", ",".join(amounts)]
        return words

    def environment(self) -> dict[str, str]:
        """What its worker must find in its environment."""
        return {"WINDLASS_SERVER": self.server, "WINDLASS_CODE": self.code}

    def script(self, setup: str = "") -> str:
        """A shell script that becomes the worker; `setup` comes before."""
        lines = ["#!/bin/sh", *([setup.rstrip("\n")] if setup else [])]
        lines += [f"export {k}={shlex.quote(v)}" for k, v in self.environment().items()]
        return "\n".join([*lines, f"exec {shlex.join(self.command())}", ""])


class Machine(NamedTuple):
    """A machine that exists, or is about to; `id` is what the provider calls it."""

    token: str
    id: str


class Provider(Protocol):
    """One way to get machines. `settle_ms` is how long a new one may stay unseen in lists.

    Where machines are only seen from the host that they are on, `host` is the one that this
    server is on, and ids begin with it (`host:…`); elsewhere it is empty.
    """

    settle_ms: int
    host: str

    async def launch(self, order: Order) -> Machine:
        """Start a machine, unless there is one with this token. Raises `ProviderFault`."""
        ...

    async def find(self, owner: Owner) -> Sequence[Machine] | None:
        """The owner's machines that have not ended; None if nobody can tell.

        Raises `ProviderFault`.
        """
        ...

    async def terminate(self, machines: Sequence[Machine]) -> None:
        """End these; those that have ended are passed over. Raises `ProviderFault`."""
        ...


class Providers(Protocol):
    """Makes the provider of a pool; raises `InvalidInput` for options that cannot work."""

    def __call__(self, pool: Pool) -> Provider: ...
