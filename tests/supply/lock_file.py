"""Lock files: exact versions, each with the SHA-256 digests of all files that it may come as.

python -m tests.supply.lock_file pins    the versions alone
python -m tests.supply.lock_file split   writes the smaller locks anew, from the large one
"""

import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.supply.requirements import BUILD, ROOT, closure, ours

_PIN: Final = re.compile(r"([A-Za-z0-9][\w.-]*)==([^\s;\\]+)([^\\]*)")
_DIGEST: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
LOCK: Final = ROOT / "requirements-dev.lock"
# The smaller locks, and what they are for. `None` stands for the tools that build packages.
PARTS: Final[dict[str, tuple[tuple[str, ...] | None, str]]] = {
    "requirements-build.lock": (None, "what builds packages, installed before all others"),
    "requirements-demo.lock": (("demo",), "what `make demo` installs"),
    "requirements-core.lock": ((), "an installation without extras, for its bill of materials"),
    "requirements-all.lock": (("all",), "the same with the extra `all`"),
}


class Pin(NamedTuple):
    """One package, as a lock names it."""

    name: str
    version: str
    marker: str  # such as `; sys_platform == "linux"`, or empty
    digests: tuple[str, ...]

    @property
    def text(self) -> str:
        """The pin as it stands in a lock."""
        digests = "".join(f" \\\n    --hash=sha256:{digest}" for digest in self.digests)
        return f"{self.name}=={self.version}{self.marker}{digests}\n"


def read_lock(path: Path) -> dict[str, Pin]:
    """Returns the pins of a lock by canonical name; refuses any other line."""
    pins: dict[str, Pin] = {}
    joined = path.read_text().replace("\\\n", " ")
    for line in joined.splitlines():
        text = line.partition("#")[0].strip()
        if not text:
            continue
        head = text.partition("--hash")[0].strip()
        match = _PIN.fullmatch(head)
        if match is None:
            raise SystemExit(f"expected NAME==VERSION in {path}, got {line!r}")
        name, version, marker = match.groups()
        key = canonicalize_name(name)
        if key in pins:
            raise SystemExit(f"{path} pins {name} twice")
        marker = f" {marker.strip()}" if marker.strip() else ""
        pins[key] = Pin(name, version, marker, tuple(_DIGEST.findall(text)))
    return pins


def part(name: str, pins: dict[str, Pin]) -> str:
    """Returns the content of one of the smaller locks."""
    extras, purpose = PARTS[name]
    wanted = [Requirement(one) for one in BUILD] if extras is None else ours(extras)
    header = f"# A part of {LOCK.name}: {purpose}. Written by `make lock-hashes`.\n"
    return header + "".join(pins[found].text for found in sorted(closure(wanted)))


def main() -> None:
    """Prints the versions, or writes the smaller locks."""
    pins = read_lock(LOCK)
    if sys.argv[1:] == ["pins"]:
        sys.stdout.writelines(f"{p.name}=={p.version}{p.marker}\n" for p in pins.values())
    elif sys.argv[1:] == ["split"]:
        for name in PARTS:
            (ROOT / name).write_text(part(name, pins))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
