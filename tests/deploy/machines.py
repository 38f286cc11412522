"""Machines of a farm as folders of this one: what the guide copies, starts and restarts there.

The commands of the guide run as they are written, with the paths of the machine below a folder of
its own. Only what installs packages and makes users is left out, and `systemctl` is done here: a
unit's command runs as its file says, with its environment and credentials, without its limits.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from tests.support.debian import find_program
from tests.support.loopback import die_with_parent
from tests.support.running import run
from tests.support.waiting import until

INSTALLS: Final = (
    "apt-get ", "python3 -m venv ", "/opt/windlass/bin/pip ", "systemd-sysusers", "install -d ",
)  # fmt: skip
PLACES: Final = re.compile(r"(?<![\w.-])/(etc|var/lib)/")
BLOCK: Final = re.compile(
    r"^```sh\n# (?P<where>[^\n]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
MAX_S: Final = 180
WINDLASS: Final = "/opt/windlass/bin/windlass"


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yields the commands of a page, and where each block of them is to be run."""
    for found in BLOCK.finditer(page):
        yield found["where"], found["text"].replace("\\\n", " ")


def wait_until(what: str, check: Callable[[], bool]) -> None:
    """Waits for other processes."""

    async def checked() -> bool:
        return check()

    run(until(what, checked, MAX_S))


def pairs(path: Path) -> list[tuple[str, str]]:
    """Returns the lines NAME=VALUE of a unit or of a file with variables."""
    found = [line.partition("=") for line in path.read_text().splitlines()]
    return [(name, value) for name, sign, value in found if sign and not name.startswith("#")]


class Machine:
    """One machine: a home with the files of the farm, and the services that were started."""

    def __init__(self, folder: Path, name: str, settings: Mapping[str, str]) -> None:
        self.name = name
        self.root = folder / name
        self.home = self.root / "home"
        self.home.mkdir(parents=True)
        for made in ("etc/systemd/system", "var/lib"):
            (self.root / made).mkdir(parents=True)
        self._settings = settings  # lines of server.env that are the machine's own
        self._shell = self.root / "exported"
        self._shell.touch()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stops all services of the machine."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            self._end(process)

    def take(self, *paths: Path) -> None:
        """Copies files or folders into the home."""
        for path in paths:
            if path.is_dir():
                shutil.copytree(path, self.home / path.name, dirs_exist_ok=True)
            else:
                shutil.copy(path, self.home / path.name)

    def run(self, commands: str) -> str:
        """Runs a block of commands of the guide and returns what they print."""
        said: list[str] = []
        waiting: list[str] = []
        for line in filter(None, commands.splitlines()):
            if line.startswith("systemctl "):
                said.append(self._sh(waiting))
                waiting.clear()
                self._systemctl(*shlex.split(line)[1:])
            elif not line.startswith(INSTALLS):
                waiting.append(line)
        said.append(self._sh(waiting))
        return "".join(said)

    def _sh(self, lines: list[str]) -> str:
        if not lines:
            return ""
        text = "\n".join(map(self._here, lines)).replace("runuser -u windlass -- ", "")
        kept = f'"{self._shell}"'
        script = f"hostname() {{ echo {self.name}; }}\n. {kept}\n{text}\nexport -p > {kept}\n"
        done = subprocess.run(
            ["sh", "-euc", script], cwd=self.home, env=self._environment(), text=True,
            capture_output=True, timeout=MAX_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (text, done.stdout, done.stderr, self.tails())
        self._settle()
        return done.stdout

    def _here(self, text: str) -> str:
        """Returns a text with the paths of this machine."""
        text = text.replace(WINDLASS, f"{Path(sys.executable).with_name('windlass')}")
        return PLACES.sub(rf"{self.root}/\1/", text)

    def _settle(self) -> None:
        """Writes this machine's paths and settings into the files that were copied."""
        for path in (self.root / "etc").rglob("*"):
            if path.is_file():
                text = self._here(path.read_text())
                if path.name == "server.env":
                    for name, value in self._settings.items():
                        text = re.sub(
                            rf"^(# )?{name}=.*$", f"{name}={value}", text, flags=re.MULTILINE
                        )
                if path.name == "haproxy.cfg":
                    text = text.replace("bind :", "bind 127.0.0.1:").replace("maxconn 8000", "")
                if text != path.read_text():
                    path.write_text(text)

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": self._settings["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8",
            "WINDLASS_CONTAINER_ENGINE": "off",
        }  # fmt: skip

    def _systemctl(self, verb: str, *words: str) -> None:
        for word in words:
            if word.startswith("--"):
                continue
            unit = self.root / "etc/systemd/system" / (word if "." in word else f"{word}.service")
            if unit.suffix == ".timer":
                assert unit.exists(), unit
                continue
            if verb == "restart" and word in self._running:
                self._end(self._running.pop(word))
            self._start(word, unit)

    def _start(self, name: str, unit: Path) -> None:
        if name == "haproxy":
            path = self.root / "etc/haproxy/haproxy.cfg"
            self._spawn(name, [find_program(name) or name, "-db", "-f", str(path)], {})
            return
        lines = pairs(unit)
        environment = self._prepared(lines)
        command = self._command(dict(lines)["ExecStart"], environment)
        if ("Type", "notify") in lines:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
                told.settimeout(MAX_S)
                told.bind(f"\0windlass-test-{os.getpid()}-{self.name}")
                address = f"@windlass-test-{os.getpid()}-{self.name}"
                self._spawn(name, command, environment | {"NOTIFY_SOCKET": address})
                assert told.recv(100) == b"READY=1"
        else:
            self._spawn(name, command, environment)
        if ("Type", "oneshot") in lines:
            assert self._running.pop(name).wait(MAX_S) == 0, self.tails()

    def _spawn(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        with (self.root / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, env={**self._environment(), **environment}, cwd=self.root, stdout=log,
                stderr=log, preexec_fn=die_with_parent,  # noqa: PLW1509
            )  # fmt: skip

    def _prepared(self, lines: list[tuple[str, str]]) -> dict[str, str]:
        """Makes the folders and credentials of a unit; returns its environment."""
        environment: dict[str, str] = {}
        credentials = self.root / "credentials"
        credentials.mkdir(exist_ok=True)
        for name, value in lines:
            if name == "EnvironmentFile":
                environment.update(pairs(Path(value)))
            elif name == "Environment":
                variable, _, given = value.partition("=")
                environment[variable] = given
            elif name == "LoadCredential":
                target, _, source = value.partition(":")
                shutil.copy(source, credentials / target)
            elif name == "StateDirectory":
                for folder in value.split():
                    (self.root / "var/lib" / folder).mkdir(exist_ok=True, mode=0o700)
        return environment

    def _command(self, line: str, environment: Mapping[str, str]) -> list[str]:
        """Returns the words that a unit starts, with specifiers and variables replaced."""
        line = line.replace("%d", f"{self.root}/credentials").replace("%H", self.name)
        return [
            re.sub(r"\$\{(\w+)\}", lambda name: environment[name[1]], one) for one in line.split()
        ]

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        process.terminate()
        try:
            process.wait(MAX_S)
        finally:
            process.kill()

    def tails(self) -> str:
        """Returns the ends of all logs."""
        return "\n".join(
            f"{path.name}: {path.read_text()[-2000:]}" for path in self.root.glob("*.log")
        )
