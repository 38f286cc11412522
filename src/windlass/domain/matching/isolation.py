"""How far a job is kept apart from its worker and from other jobs: the modes, and their order.

The worker, the queue and the job each name a mode, and the strongest counts. So a job can demand
more than its queue or its worker, and never less.
"""

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


def check_mode(value: Any, field: str) -> None:
    """Raises `InvalidInput` for an unknown mode."""
    check_choice(value, MODES, field)


def check_choice(value: Any, choices: tuple[str, ...], field: str) -> None:
    """Raises `InvalidInput` for a value that is none of these; None is allowed."""
    if value is not None and value not in choices:
        raise InvalidInput(field, f"one of {', '.join(choices)}", value)
