"""Removes what killed agents left in the temporary folder.

Tests kill agents whose state folder has a long name, and whom nobody follows.
"""

import shutil
import socket
import tempfile
from pathlib import Path

from windlass.worker.attempt.job_socket import APART


def remove_dead_sockets(folder: Path | None = None) -> list[Path]:
    """Removes the folders of sockets on which nobody listens, and returns them."""
    made = (folder or Path(tempfile.gettempdir())).glob(f"{APART}*/agent.sock")
    dead = [path.parent for path in made if _is_dead(path)]
    for path in dead:
        shutil.rmtree(path, ignore_errors=True)
    return dead


def _is_dead(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False
