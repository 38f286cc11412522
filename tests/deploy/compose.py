"""Does with plain podman what our guide asks of `docker compose`.

All services share the machine's network. Those whose images come from a registry are left out:
there is none here. Called by the test as a program: VERB WORD..., with podman's words in `PODMAN`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

BASE: Final = "localhost/python:1"
_VARIABLE: Final = re.compile(r"\$\{(?P<name>\w+)(:-(?P<default>[^}]*))?\}")


def services() -> Mapping[str, Any]:
    """Returns the services of compose.yaml whose images are made here, with values of .env."""
    lines = Path(".env").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if "=" in line)
    text = _VARIABLE.sub(
        lambda found: given.get(found["name"], found["default"] or ""),
        Path("compose.yaml").read_text(),
    )
    found = yaml.safe_load(text)["services"]
    return {name: one for name, one in found.items() if one["image"].startswith("localhost/")}


def build(service: Mapping[str, Any]) -> list[str]:
    """Returns podman's words that build the image of a service."""
    return [
        "build", "--layers=false", "--build-arg", f"BASE={BASE}",
        "--build-arg", "PIP_OPTIONS=--no-index", "--file", service["build"]["dockerfile"],
        "--target", service["build"]["target"], "--tag", service["image"], ".",
    ]  # fmt: skip


def start(name: str, service: Mapping[str, Any]) -> list[str]:
    """Returns podman's words that start a service."""
    entry = service.get("entrypoint", [])
    return [
        "run", "--detach", "--name", name, "--network=host", "--restart=on-failure",
        *(f"--volume={one}" for one in service["volumes"]),
        *(f"--env={key}={value}" for key, value in service["environment"].items()),
        *(f"--entrypoint={one}" for one in entry[:1]), service["image"], *entry[1:],
        *service["command"],
    ]  # fmt: skip


def orders(verb: str, words: list[str]) -> Iterator[list[str]]:
    """Yields what podman is told to do."""
    if verb == "exec":
        yield ["exec", *(word for word in words if word != "-T")]
    elif verb == "build":
        yield from (build(one) for one in services().values() if "build" in one)
    elif verb == "up":
        yield from (start(name, one) for name, one in services().items() if name in words)


if __name__ == "__main__":
    for order in orders(sys.argv[1], sys.argv[2:]):
        done = subprocess.run([*shlex.split(os.environ["PODMAN"]), *order], check=False)
        if done.returncode:
            sys.exit(done.returncode)
