"""Makes a release: `make release VERSION=1.2.3`, in three steps of which each can be repeated.

`prepare` opens the changelog entry, raises the versions and commits; `make release-files` builds;
`tag` checks what was built and tags the commit. Nothing is pushed.
"""

import argparse
import hashlib
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

from windlass.clock import RealClock

PROJECTS: Final = ("pyproject.toml", "fuzz/pyproject.toml")
CHANGELOG: Final = "CHANGELOG.md"
UNRELEASED: Final = "## [Unreleased]\n"
NOTHING: Final = "Nothing yet."
FILES: Final = (
    "windlass-{0}-py3-none-any.whl", "windlass-{0}.tar.gz", "windlass_fuzz-{0}-py3-none-any.whl",
    "windlass_fuzz-{0}.tar.gz", "windlass-all.cdx.json", "windlass-core.cdx.json",
)  # fmt: skip


def git(*words: str) -> str:
    """Runs git in the working directory and returns what it prints."""
    return subprocess.run(
        ["git", *words], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def expect_clean() -> None:
    """Refuses to release what is not committed."""
    if changed := git("status", "--porcelain"):
        sys.exit(f"expected a clean working tree, got\n{changed}")


def is_prepared(version: str) -> bool:
    """Returns whether the last commit prepared this release."""
    return git("log", "-1", "--format=%s") == f"Release {version}"


def prepare(version: str) -> None:
    """Opens the changelog entry, raises the versions and commits."""
    expect_clean()
    if is_prepared(version):
        return
    tags = [Version(tag) for tag in git("tag", "--list", "v*").split()]
    if tags and Version(version) <= max(tags):
        sys.exit(f"expected a version above {max(tags)}, got {version}")
    open_entry(Path(CHANGELOG), version)
    for project in PROJECTS:
        raise_version(Path(project), version)
    git("commit", "--quiet", "--all", "--message", f"Release {version}")


def open_entry(changelog: Path, version: str) -> None:
    """Renames what is unreleased to the version with today's date."""
    text = changelog.read_text()
    before, heading, after = text.partition(UNRELEASED)
    entry = after.partition("\n## ")[0].strip()
    if not heading or entry in ("", NOTHING):
        sys.exit(f"expected {changelog} to say under Unreleased what is new, it says nothing")
    dated = f"## [{version}] - {datetime.fromtimestamp(RealClock().now_ms() / 1000, UTC).date()}\n"
    changelog.write_text(f"{before}{UNRELEASED}\n{NOTHING}\n\n{dated}{after}")


def raise_version(project: Path, version: str) -> None:
    """Sets the version of a project, and those that our projects ask of each other."""
    text = project.read_text()
    text = re.sub(r'^version = ".*"$', f'version = "{version}"', text, flags=re.MULTILINE)
    project.write_text(re.sub(r'("windlass(-fuzz)?(\[\w+\])?==)[^"]+"', rf'\g<1>{version}"', text))


def tag(version: str, *, signed: bool) -> None:
    """Checks the files of the release and tags the commit."""
    expect_clean()
    if not is_prepared(version):
        sys.exit(f"expected the last commit to be `Release {version}`")
    sums = Path("dist/SHA256SUMS")
    lines = sums.read_text().splitlines() if sums.exists() else []
    for name in (one.format(version) for one in FILES):
        path = Path("dist", name)
        if not path.exists():
            sys.exit(f"expected {path}: run `make release-files`")
        if f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}" not in lines:
            sys.exit(f"{path} is not what dist/SHA256SUMS lists: run `make release-files`")
    how = "--sign" if signed else "--annotate"
    git("tag", how, "--message", f"Windlass {version}", f"v{version}")
    sys.stdout.write(f"tagged v{version}; publish it: git push origin main v{version}\n")


def main() -> None:
    """Carries out one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("prepare", "tag"))
    parser.add_argument("version")
    parser.add_argument("--unsigned", action="store_true", help="for rehearsals")
    given = parser.parse_args()
    try:
        wanted = str(Version(given.version))
    except InvalidVersion:
        wanted = ""
    if not re.fullmatch(r"\d+\.\d+\.\d+", wanted):
        sys.exit(f"expected VERSION=1.2.3, got {given.version!r}")
    if given.step == "prepare":
        prepare(wanted)
    else:
        tag(wanted, signed=not given.unsigned)


if __name__ == "__main__":
    main()
