"""The options for what a worker offers to jobs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from windlass.cli.options.flags import Many
from windlass.domain.matching.resources import canonical_resources, resource_key
from windlass.domain.matching.room import CPUS, SHARES
from windlass.domain.values.errors import InvalidInput
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.attempt.secrets import load_secrets

IMPORT_VARIABLE: Final = "WINDLASS_IMPORT"  # space-separated modules
# Other users can read a command line, but not its environment.
Code = Annotated[str | None, Parameter(env_var="WINDLASS_CODE")]
Imports = Annotated[
    list[str] | None,
    Parameter(name="--import", env_var=IMPORT_VARIABLE, consume_multiple=False),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Offers:
    """What jobs can use on this worker.

    Parameters
    ----------
    slots
        How many jobs it runs at the same time. Default: 1, or as many as --resources allow.
    resources
        What jobs share, such as cpus=8,gpus=1,licences=4; as many jobs run as fit.
    modules
        A module with tasks (`@windlass.task(name=…)`) to run. Repeatable.
    secret
        NAME=@FILE or NAMESPACE/NAME=@FILE: a secret for jobs. Repeatable.
    secrets
        A directory of secrets, one file each; those in NAMESPACE/ are for that namespace only.
    cgroup
        A cgroup v2 directory for its jobs; auto uses one that was delegated to the worker, off
        uses none.
    """

    slots: int | None = None
    resources: str | None = None
    modules: Imports = None
    secret: Many = None
    secrets: Path | None = None
    cgroup: str = "auto"

    def options(
        self, name: str, state: Path, code: str | None, environ: Mapping[str, str]
    ) -> WorkerOptions:
        """Returns the worker's options; raises `InvalidInput`."""
        if self.slots is not None and self.slots < 1:
            raise InvalidInput("slots", "at least 1", self.slots)
        amounts = _amounts(self.resources)
        metadata: dict[str, object] = {}
        slots = self.slots or 1
        if amounts:  # The server counts usage; a job that asks for no CPUs uses one.
            amounts = {CPUS: len(os.sched_getaffinity(0)), **amounts}
            metadata = {resource_key(name): amount for name, amount in amounts.items()}
            metadata[SHARES] = True
            slots = self.slots or max(1, amounts[CPUS])
        return WorkerOptions(
            name=name,
            state=state,
            slots=slots,
            metadata=metadata,
            code=code,
            imports=tuple(self.modules or ()),
            secrets=load_secrets(environ, self.secret or (), self.secrets),
            cgroup=self.cgroup,
        )


NOTHING: Final = Offers()


def _amounts(text: str | None) -> dict[str, int]:
    given: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part:
            continue
        name, separator, value = part.partition("=")
        if not separator:
            raise InvalidInput("resources", "name=amount, comma-separated", part)
        given[name.strip()] = value.strip()
    return dict(canonical_resources(given))
