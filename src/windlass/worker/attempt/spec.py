"""The part of a job's description that a worker reads, and the isolation of the job."""

from typing import Any, Final

import msgspec

from windlass.domain.job.forms import JobLimits
from windlass.domain.matching.isolation import Isolation, Network, Pull, demanded
from windlass.domain.tasks.references import FILE
from windlass.messages.sync import Assignment
from windlass.worker.isolation.modes import Modes

FILE_MARK: Final = f'"{FILE}"'.encode()


class AttemptSpec(msgspec.Struct):
    """What to run, with which secrets, and how it is isolated."""

    task: str
    args: msgspec.Raw = msgspec.Raw(b"null")
    queue: str = "default"
    trace: str | None = None
    workflow: int | None = None
    namespace: str = "default"
    secrets: tuple[str, ...] = ()
    version: str | None = None
    resources: dict[str, Any] | None = None
    isolation: Isolation | None = None
    network: Network | None = None
    image: str | None = None
    pull: Pull | None = None
    registry_secret: str | None = None
    limits: JobLimits | None = None
    timeout: float | str | None = None
    finish_before: str | None = None

    @property
    def says_when_it_ends(self) -> bool:
        """Returns whether the job itself limits its run time."""
        return self.timeout is not None or self.finish_before is not None

    @property
    def has_files(self) -> bool:
        """Returns whether its arguments may name files."""
        return FILE_MARK in bytes(self.args)

    @property
    def all_secrets(self) -> tuple[str, ...]:
        """Returns the names of all secrets that the worker must have for it."""
        own = () if self.registry_secret is None else (self.registry_secret,)
        return (*self.secrets, *own)


read_spec = msgspec.json.Decoder(AttemptSpec).decode


def isolation_of(modes: Modes, assignment: Assignment, spec: AttemptSpec) -> Isolation:
    """Returns the strongest mode that the job, its queue or this worker demands."""
    if not (spec.isolation or spec.network or spec.image or assignment.isolation):
        return modes.default
    own = demanded(spec.isolation, spec.network, spec.image)
    return modes.choose(own, assignment.isolation)
