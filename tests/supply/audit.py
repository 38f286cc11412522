"""Known vulnerabilities of the packages in the lock: `python -m tests.supply.audit`.

It ends with 0 only if a database was asked and knew of nothing. 1: there are vulnerabilities.
2: no database could be reached, so nothing is known.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.supply.lock_file import LOCK

FOUND: Final = 1
NOT_ASKED: Final = 2
SERVICES: Final = ("pypi", "osv")
# How pip-audit says that a service did not answer.
_SILENT: Final = ("ConnectionError", "ServiceError", "Timeout", "Max retries", "HTTPError")


def audit(lock: Path) -> int:
    """Asks one database after another until one answers; returns the exit code."""
    for service in SERVICES:
        command = [
            sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--require-hashes",
            "--disable-pip", "--progress-spinner", "off", "--vulnerability-service", service,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and "No known vulnerabilities found" in done.stderr + done.stdout:
            sys.stdout.write(f"{service}: no known vulnerabilities\n")
            return 0
        if done.returncode and not any(word in done.stderr for word in _SILENT):
            sys.stdout.write(done.stdout + done.stderr)
            return FOUND
        sys.stderr.write(f"{service}: not reachable\n")
    sys.stderr.write("NOT AUDITED: no database of vulnerabilities could be reached\n")
    return NOT_ASKED


if __name__ == "__main__":
    sys.exit(audit(LOCK))
