"""`windlass checksum`."""

from pathlib import Path

import windlass
from windlass_checksum.tasks import checksum as task


def checksum(*files: Path) -> None:
    """Print checksums of files, computed by workers.

    Parameters
    ----------
    files
        Files of this machine. Each is one job.
    """
    with windlass.Client() as client:
        jobs = [client.submit(task.options(name=file.name), file) for file in files]
        for file, job in zip(files, jobs, strict=True):
            print(f"{job.result()}  {file}")
