"""Known vulnerabilities of the packages in the lock: `python -m tests.supply.audit`.

It ends with 0 only if a database was asked and knew of nothing. 1: there are vulnerabilities.
2: no database could be reached, so nothing is known.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.supply.lock_file import LOCK

FOUND: Final = 1
NOT_ASKED: Final = 2
SERVICES: Final = ("pypi", "osv")


class Verdict(NamedTuple):
    """The exit code, and why."""

    code: int
    text: str


def audit(lock: Path) -> int:
    """Asks one database after another until one knows all packages; returns the exit code."""
    for service in SERVICES:
        command = [
            sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--require-hashes",
            "--disable-pip", "--progress-spinner", "off", "--vulnerability-service", service,
            "--format", "json",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        verdict = judge(done.stdout)
        sys.stdout.write(f"{service}: {verdict.text}\n")
        if verdict.code != NOT_ASKED:
            return verdict.code
    sys.stderr.write("NOT AUDITED: no database of vulnerabilities answered for all packages\n")
    return NOT_ASKED


def judge(report: str) -> Verdict:
    """Judges the report of pip-audit, which calls packages harmless that nobody was asked about."""
    try:
        packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Verdict(NOT_ASKED, "not reachable")
    found = [
        f"{package['name']} {package['version']}: {one['id']}"
        for package in packages
        for one in package.get("vulns", ())
    ]
    if found:
        return Verdict(FOUND, "\n".join(found))
    skipped = [package["name"] for package in packages if "vulns" not in package]
    if skipped or not packages:
        return Verdict(NOT_ASKED, f"says nothing about {len(skipped)} of {len(packages)} packages")
    return Verdict(0, f"no known vulnerabilities in {len(packages)} packages")


if __name__ == "__main__":
    sys.exit(audit(LOCK))
