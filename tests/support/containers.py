"""A container engine for tests: rootless podman of an ordinary user, and an image made here.

Where the tests are run by root, that user exists only in mount namespaces of the processes that
the tests start for it: nothing of the machine is changed.
"""

import io
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.support.debian import missing_reason
from tests.support.unprivileged import UID, become_user

IMAGE: Final = "localhost/windlass-test:1"
NEEDED: Final = ("podman", "runc", "newuidmap", "busybox", "catatonit", "cc")
MAX_S: Final = 60
TOOLS: Final = (
    "cat", "chmod", "chown", "cp", "dd", "echo", "env", "find", "grep", "head", "id", "kill", "ls",
    "mkdir", "mount", "mv", "printf", "ps", "readlink", "rm", "sed", "seq", "setsid", "sh", "sleep",
    "stat", "tail", "tee", "touch", "tr", "true", "umount", "uname", "wc",
)  # fmt: skip


class EngineMissingError(Exception):
    """There is no engine here that an ordinary user can run."""


class RootlessPodman:
    """Podman with a store of its own. `folder` belongs to the user who runs it."""

    def __init__(self) -> None:
        for program in NEEDED:
            if reason := missing_reason(program):
                raise EngineMissingError(reason)
        self.folder = Path(tempfile.mkdtemp(prefix="wlc-", dir="/tmp"))
        self.uid = UID if os.geteuid() == 0 else os.geteuid()
        self._prefix: list[str] = []
        home, run = self.folder / "home", self.folder / "run"
        settings = home / ".config/containers"
        settings.mkdir(parents=True)
        run.mkdir(mode=0o700)
        (settings / "containers.conf").write_text(
            '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\nruntime = "runc"\n'
        )
        self.registries = settings / "registries.conf"
        (settings / "storage.conf").write_text('[storage]\ndriver = "vfs"\n')
        self.env: dict[str, str] = {
            "HOME": str(home), "XDG_RUNTIME_DIR": str(run), "TMPDIR": str(self.folder),
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "LANG": "C.UTF-8",
        }  # fmt: skip
        if os.geteuid() == 0:
            try:
                self._prefix = become_user(self.folder, home)
            except FileNotFoundError as missing:
                raise EngineMissingError(str(missing)) from missing

    def command(self, argv: Sequence[str]) -> list[str]:
        """Returns how a program is started as the user."""
        return [*self._prefix, *argv]

    def run(self, *arguments: str, **more: object) -> str:
        """Runs podman and returns what it prints."""
        done = subprocess.run(
            self.command(["podman", "--log-level", "error", *arguments]), env=self.env,
            capture_output=True, text=True, timeout=MAX_S, check=False, cwd=self.folder,
        )  # fmt: skip
        if done.returncode != 0:
            raise EngineMissingError(f"podman {shlex.join(arguments)}: {done.stderr}")
        return done.stdout.strip()

    def import_image(self, content: bytes, name: str) -> None:
        """Makes an image of these files."""
        archive = self.folder / "image.tar"
        archive.write_bytes(content)
        archive.chmod(0o644)
        self.run("import", str(archive), name)

    def containers(self) -> list[str]:
        """Returns the names of all containers, running or not."""
        return self.run("ps", "--all", "--format", "{{.Names}}").split()

    def give(self, path: Path) -> Path:
        """Hands a folder over to the user."""
        if os.geteuid() == 0:
            os.chown(path, self.uid, self.uid)
        return path

    def close(self) -> None:
        """Removes everything, the process that holds the user's namespace included."""
        self.run("rm", "--all", "--force", "--time", "0")
        if os.geteuid() != 0:
            self.run("unshare", "rm", "-rf", str(self.folder / "home/.local"))
        pause = self.folder / "run/libpod/tmp/pause.pid"
        if pause.exists():
            os.kill(int(pause.read_text()), 9)
        shutil.rmtree(self.folder, ignore_errors=True)


# Connects to a socket of this machine, sends its input and prints the answer.
SAY: Final = """
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    char data[65536];
    ssize_t size;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(where.sun_path, words[1], sizeof where.sun_path - 1);
    if (connect(fd, (struct sockaddr *)&where, sizeof where)) return 1;
    while ((size = read(0, data, sizeof data)) > 0) write(fd, data, size);
    while ((size = read(fd, data, sizeof data)) > 0) write(1, data, size);
    return 0;
}
"""


def _built(folder: Path) -> dict[str, bytes]:
    """Returns programs for the image that busybox lacks."""
    source, program = folder / "say.c", folder / "say"
    source.write_text(SAY)
    subprocess.run(["cc", "-static", "-w", "-o", program, source], check=True)
    return {"bin/say": program.read_bytes()}


def image_archive(extra: Mapping[str, bytes] | None = None, tools: Sequence[str] = TOOLS) -> bytes:
    """Returns the files of the image: a static busybox and links to it, and these."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in ("bin", "tmp", "etc", "data"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        archive.add(busybox, "bin/busybox")
        for name in tools:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
        for name, content in (extra or {}).items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


def python_archive() -> bytes:
    """Returns the files of an image with the Python that runs the tests, and a shell."""
    python = Path(sys.executable).resolve()
    library = Path(os.__file__).parent
    modules = [path for path in (library / "lib-dynload").iterdir() if path.suffix == ".so"]
    data = io.BytesIO(image_archive(tools=[name for name in TOOLS if name != "sleep"]))
    with tarfile.open(fileobj=data, mode="a") as archive:
        sleep = Path("/bin/sleep")  # which runs under any name, as busybox does not
        for path in (python, sleep, *libraries(python, sleep, *modules)):
            archive.add(path.resolve(), str(path))
        archive.add(library, str(library), filter=_needed)
    return data.getvalue()


UNNEEDED: Final = frozenset({
    "__pycache__", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tests", "tkinter",
    "turtledemo",
})  # fmt: skip


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    name = entry.name.rpartition("/")[2]
    return None if name in UNNEEDED or name.startswith("config-") else entry


def libraries(*programs: Path) -> set[Path]:
    """Returns the shared libraries that programs load."""
    done = subprocess.run(
        ["ldd", *programs], capture_output=True, text=True, timeout=MAX_S, check=False
    )
    words = (word for line in done.stdout.splitlines() for word in line.split())
    return {Path(word) for word in words if word.startswith("/") and not word.endswith(":")}


def start_podman() -> RootlessPodman:
    """Returns an engine with an image, or raises `EngineMissingError`."""
    engine = RootlessPodman()
    try:
        engine.import_image(image_archive(_built(engine.folder)), IMAGE)
    except BaseException:
        shutil.rmtree(engine.folder, ignore_errors=True)
        raise
    return engine
