"""Waits until processes of others have ended."""

from pathlib import Path

from tests.support.waiting import until

PATIENCE_S = 60


def gone(pid: int) -> bool:
    """Returns whether a process has ended; a zombie has."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


async def until_gone(*pids: int) -> None:
    """Returns once all of the processes have ended."""

    async def check() -> bool:
        return all(map(gone, pids))

    await until(f"the processes {pids} have ended", check, PATIENCE_S)
