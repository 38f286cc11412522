"""How far a job is kept apart from its worker and from other jobs: the modes, and their order.

The worker, the queue and the job each name a mode, and the strongest counts. So a job can demand
more than its queue or its worker, and never less.
"""

import re
from typing import Any, Final, Literal, get_args

from windlass.domain.values.errors import InvalidInput

Isolation = Literal["process", "user", "sandbox", "container"]
Network = Literal["host", "none"]
Pull = Literal["missing", "always", "never"]

MODES: Final[tuple[Isolation, ...]] = get_args(Isolation)  # the weakest first
NETWORKS: Final[tuple[Network, ...]] = get_args(Network)
PULLS: Final[tuple[Pull, ...]] = get_args(Pull)
WEAKEST: Final[Isolation] = "process"
OFFERED: Final = "isolation"  # metadata: the modes that a worker can run jobs in
IMAGE_LIMIT: Final = 500
# Where engines can read images from, besides registries.
TRANSPORTS: Final = frozenset({
    "atomic", "containers-storage", "dir", "docker-archive", "docker-daemon", "oci",
    "oci-archive", "ostree", "sif", "tarball",
})  # fmt: skip
_IMAGE: Final = re.compile(
    r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?/)?"  # the registry
    r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"  # the repository
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
DEFAULT: Final = "isolation:default"  # metadata: the mode it uses unless more is demanded


def strongest(*modes: Isolation | None) -> Isolation:
    """Returns the strongest of these modes."""
    return max((mode for mode in modes if mode), key=MODES.index, default=WEAKEST)


def demanded(
    isolation: Isolation | None, network: Network | None, image: str | None
) -> Isolation | None:
    """Returns the mode that these options of a job demand; None if they demand none.

    An image needs a container, and a job can only be cut off from the network by a mode that
    has network namespaces.
    """
    found = strongest(
        isolation, "container" if image else None, "sandbox" if network == "none" else None
    )
    return None if found == WEAKEST else found


def check_image(value: Any, field: str) -> None:
    """Raises `InvalidInput` unless this names an image of a registry or of the worker's engine.

    Engines also read images from files and elsewhere, by names such as `dir:NAME`: those are the
    worker's own.
    """
    named = isinstance(value, str) and len(value) <= IMAGE_LIMIT and _IMAGE.fullmatch(value)
    if not named or value.partition(":")[0] in TRANSPORTS:
        raise InvalidInput(field, "the name of an image, such as docker.io/library/python:3", value)


def check_mode(value: Any, field: str) -> None:
    """Raises `InvalidInput` for an unknown mode."""
    check_choice(value, MODES, field)


def check_choice(value: Any, choices: tuple[str, ...], field: str) -> None:
    """Raises `InvalidInput` for a value that is none of these; None is allowed."""
    if value is not None and value not in choices:
        raise InvalidInput(field, f"one of {', '.join(choices)}", value)
