"""Bills of materials in the form of CycloneDX: `python -m tests.supply.sbom FOLDER`.

One for an installation without extras, and one with the extra `all`. Each is made from an empty
environment that holds exactly the packages of its lock, checked by their digests.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

from tests.supply.requirements import ROOT

LOCKS: Final = {"core": "requirements-core.lock", "all": "requirements-all.lock"}


def main(folder: Path) -> None:
    """Writes both into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, lock in LOCKS.items():
        target = folder / f"windlass-{name}.cdx.json"
        with tempfile.TemporaryDirectory() as place:
            python = _environment(Path(place), ROOT / lock)
            describe(python, target)
        sys.stdout.write(f"{target}\n")


def describe(python: Path, target: Path, check: str = "--validate") -> None:
    """Describes what an environment holds; fails unless the result fits the schema."""
    command = [
        sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", check,
        "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application",
        "--output-format", "JSON", "--output-file", str(target), str(python),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


def _environment(place: Path, lock: Path) -> Path:
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    install = [
        sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps",
        "--no-compile", "--require-hashes", "--requirement", str(lock),
    ]  # fmt: skip
    subprocess.run(install, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    return python


if __name__ == "__main__":
    main(Path(sys.argv[1]))
