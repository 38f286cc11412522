"""Isolation of a job from its worker and from other jobs: the modes, and their order.

The worker, the queue and the job each name a mode, and the strongest one applies. So a job can
demand more than its queue or its worker, and never less.
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
OFFERED: Final = "isolation"  # metadata: the isolation modes that a worker supports
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
# metadata: the mode it uses unless a job demands a stronger one
DEFAULT: Final = "isolation:default"


def strongest(*modes: Isolation | None) -> Isolation:
    """Returns the strongest of these modes."""
    return max((mode for mode in modes if mode), key=MODES.index, default=WEAKEST)


def demanded(
    isolation: Isolation | None, network: Network | None, image: str | None
) -> Isolation | None:
    """Returns the mode that these options of a job demand; None if they demand none.

    An image needs a container, and only modes with network namespaces can cut a job off the
    network.
    """
    found = strongest(
        isolation, "container" if image else None, "sandbox" if network == "none" else None
    )
    return None if found == WEAKEST else found


def check_image(value: Any, field: str) -> None:
    """Raises `InvalidInput` unless this names an image of a registry or of the worker's engine.

    Engines also read images from files and elsewhere, by names such as `dir:NAME`: those would be
    files of the worker.
    """
    named = isinstance(value, str) and len(value) <= IMAGE_LIMIT and _IMAGE.fullmatch(value)
    if not named or value.partition(":")[0] in TRANSPORTS:
        raise InvalidInput(field, "the name of an image, such as docker.io/library/python:3", value)


def check_mode(value: Any, field: str) -> None:
    """Raises `InvalidInput` for an unknown mode."""
    check_choice(value, MODES, field)


def check_choice(value: Any, choices: tuple[str, ...], field: str) -> None:
    """Raises `InvalidInput` for a value that is not one of these; None is allowed."""
    if value is not None and value not in choices:
        raise InvalidInput(field, f"one of {', '.join(choices)}", value)
