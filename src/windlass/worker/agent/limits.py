"""How a worker holds jobs to their limits, for its metadata: `limits:memory` and so on."""

from collections.abc import Collection

from windlass.domain.matching.isolation import WEAKEST, Isolation

CGROUP = "cgroup"
RLIMIT = "rlimit"
WATCHED = "watched"


def mechanisms(
    controllers: Collection[str], has_cgroup: bool, default: Isolation
) -> dict[str, str]:
    """Returns the mechanism for each limit, from what the keeper's cgroup has."""
    own_user = RLIMIT if default != WEAKEST else WATCHED
    found = {
        "memory": CGROUP if "memory" in controllers else f"{RLIMIT}, {WATCHED}",
        "cpu_time": f"{RLIMIT}, {CGROUP}" if has_cgroup else f"{RLIMIT}, {WATCHED}",
        "processes": CGROUP if "pids" in controllers else own_user,
        "open_files": RLIMIT,
        "disk": f"{RLIMIT}, {WATCHED}",
    }
    return {f"limits:{name}": mechanism for name, mechanism in found.items()}
