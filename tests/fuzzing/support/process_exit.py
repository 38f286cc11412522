"""Wait until processes that are not ours have ended."""

from pathlib import Path

from tests.support.waiting import until

PATIENCE_S = 60


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has asked for its end yet has, too."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


async def until_gone(*pids: int) -> None:
    """Return once all of them have ended."""

    async def check() -> bool:
        return all(map(gone, pids))

    await until(f"the processes {pids} have ended", check, PATIENCE_S)
