"""A job that tries to get out: needs the standard library only, and prints JSON.

Its argument is JSON that tells it what there is outside. A way that raises `OSError` was stopped.
None of them does harm where it succeeds.
"""

import ctypes
import http.client
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
ATTACH, DETACH = 16, 17
PIDFD_GETFD = 438
IO_URING_SETUP, ADD_KEY, NUMBER = 425, 248, 438
NEW_USER = 0x1000_0000
NEW_MOUNTS = 0x0002_0000
DETACH_MOUNT = 2
SHARED_KEY = 0x77_69_6E_64


def checked(result: int) -> int:
    """The result of a C function; raises if it failed."""
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class Ways:
    """Each method is a way out; see `ways.py`."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told

    def _proc(self, who: str) -> Path:
        return Path(f"/proc/{self.told[who]}")

    def _read(self, path: Path | str) -> None:
        with open(path, "rb") as file:
            file.read(1)

    def _append(self, path: Path | str) -> None:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))

    def _add(self, folder: Path | str) -> None:
        path = Path(folder) / f"escape-{os.getpid()}"
        path.touch(exist_ok=False)
        path.unlink()

    def _trace(self, pid: int) -> None:
        checked(LIBC.ptrace(ATTACH, pid, 0, 0))
        os.waitpid(pid, 0)
        LIBC.ptrace(DETACH, pid, 0, 0)

    def token(self) -> None:
        self._read(f"{self.told['state']}/memory")

    def admin_token(self) -> None:
        self._read(f"{self.told['data']}/admin-token")

    def record(self) -> None:
        self._append(f"{self.told['state']}/groups")

    def state(self) -> None:
        os.stat(f"{self.told['state']}/lock")  # else it is a folder of the sandbox's own
        self._add(self.told["state"])

    def home(self) -> None:
        self._read(f"{self.told['home']}/key")

    def read_scratch(self) -> None:
        self._read(f"{self.told['scratch']}/private")

    def write_scratch(self) -> None:
        os.stat(f"{self.told['scratch']}/s")
        self._add(self.told["scratch"])

    def shared_tmp(self) -> None:
        self._add(self.told["tmp"])

    def system_file(self) -> None:
        self._append("/etc/passwd")

    def shadow(self) -> None:
        self._read("/etc/shadow")

    def system_folder(self) -> None:
        self._add("/usr/local")

    def see_processes(self) -> None:
        os.stat(self._proc("agent"))

    def agent_environ(self) -> None:
        self._read(self._proc("agent") / "environ")

    def agent_memory(self) -> None:
        self._append(self._proc("agent") / "mem")

    def agent_files(self) -> None:
        os.readlink(self._proc("agent") / "fd" / "0")

    def agent_root(self) -> None:
        self._read(self._proc("agent") / "root/etc/hostname")

    def bystander_root(self) -> None:
        self._read(self._proc("bystander") / f"root/{self.told['data']}/admin-token")

    def uncover(self) -> None:
        pid = os.fork()
        if pid == 0:
            LIBC.unshare(NEW_USER | NEW_MOUNTS)
            LIBC.umount2(self.told["data"].encode(), DETACH_MOUNT)
            try:
                self._read(f"{self.told['data']}/admin-token")
            finally:
                os._exit(1 if sys.exc_info()[0] else 0)
        if os.waitpid(pid, 0)[1]:
            raise PermissionError("it is covered")

    def keeper_memory(self) -> None:
        self._append(self._proc("keeper") / "mem")

    def keeper_socket(self) -> None:
        pidfd = os.pidfd_open(self.told["keeper"])
        for number in range(3, 10):
            os.close(checked(LIBC.syscall(PIDFD_GETFD, pidfd, number, 0)))

    def job_environ(self) -> None:
        self._read(self._proc("victim") / "environ")

    def trace_agent(self) -> None:
        self._trace(self.told["agent"])

    def trace_job(self) -> None:
        self._trace(self.told["victim"])

    def signal_agent(self) -> None:
        os.kill(self.told["agent"], 0)

    def signal_keeper(self) -> None:
        os.kill(self.told["keeper"], 0)

    def signal_job(self) -> None:
        os.kill(self.told["victim"], 0)

    def job_socket(self) -> None:
        agent = http.client.HTTPConnection("agent")
        agent.sock = socket.socket(socket.AF_UNIX)
        agent.sock.connect(os.environ["WINDLASS_AGENT"])
        agent.request("POST", "/api/v1/jobs", "{}", {"Authorization": "Bearer guessed"})
        status = agent.getresponse().status
        if status == 401:
            raise PermissionError("the socket asks for the token of the attempt")

    def file_socket(self) -> None:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(f"{self.told['scratch']}/s")

    def abstract_socket(self) -> None:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(f"\0{self.told['abstract']}")

    def shared_memory(self) -> None:
        number = checked(LIBC.shmget(SHARED_KEY + self.told["salt"], 0, 0))
        attach = LIBC.shmat
        attach.restype = ctypes.c_long
        LIBC.shmdt(ctypes.c_void_p(checked(attach(number, None, 0))))

    def network(self) -> None:
        socket.create_connection(("127.0.0.1", self.told["port"]), 5).close()

    def user_namespace(self) -> None:
        pid = os.fork()
        if pid == 0:
            os._exit(1 if LIBC.unshare(NEW_USER) else 0)
        if os.waitpid(pid, 0)[1]:
            raise PermissionError("no user namespace")

    def mount(self) -> None:
        checked(LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None))
        LIBC.umount(b"/tmp")

    def device(self) -> None:
        os.mknod("device", 0o600 | 0o060000, os.makedev(7, 0))
        os.unlink("device")

    def disk_device(self) -> None:
        names = Path("/sys/class/block").iterdir()
        disks = [Path("/dev") / path.name for path in names]
        if not any(os.access(disk, os.R_OK) for disk in disks):
            raise PermissionError("no disk can be read")

    def new_rights(self) -> None:
        status = Path("/proc/self/status").read_text()
        if "NoNewPrivs:\t1" in status:
            raise PermissionError("setuid programs give no rights here")

    def leave_cgroup(self) -> None:
        roots = [Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").glob("*")]
        places = [root / "cgroup.procs" for root in roots if (root / "cgroup.procs").exists()]
        if not any(os.access(place, os.W_OK) for place in places):
            raise PermissionError("no cgroup can be written to")
        for place in places:
            place.write_text(str(os.getpid()))

    def kernel(self) -> None:
        if os.uname().machine == "x86_64":
            checked(LIBC.syscall(ADD_KEY, b"user", b"escape", b"x", 1, -2))
        checked(LIBC.syscall(IO_URING_SETUP, 1, ctypes.create_string_buffer(256)))

    def daemon(self) -> None:
        self._leave(f"sleep-{self.told['salt']}", {})

    def other_daemon(self) -> None:
        mark = {"WINDLASS_JOB": str(self.told["victim_job"])}
        self._leave(f"other-sleep-{self.told['salt']}", mark)

    def _leave(self, name: str, environ: dict[str, str]) -> None:
        """Starts a daemon; whether it outlives the job, the test sees."""
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execve("/bin/sleep", [name, "600"], environ)
            os._exit(0)
        os.wait()


ALL: tuple[Callable[[Ways], None], ...] = (
    Ways.token,
    Ways.admin_token,
    Ways.record,
    Ways.state,
    Ways.home,
    Ways.read_scratch,
    Ways.write_scratch,
    Ways.shared_tmp,
    Ways.system_file,
    Ways.shadow,
    Ways.system_folder,
    Ways.see_processes,
    Ways.agent_environ,
    Ways.agent_memory,
    Ways.agent_files,
    Ways.agent_root,
    Ways.bystander_root,
    Ways.uncover,
    Ways.keeper_memory,
    Ways.keeper_socket,
    Ways.job_environ,
    Ways.trace_agent,
    Ways.trace_job,
    Ways.signal_agent,
    Ways.signal_keeper,
    Ways.signal_job,
    Ways.job_socket,
    Ways.file_socket,
    Ways.abstract_socket,
    Ways.shared_memory,
    Ways.network,
    Ways.user_namespace,
    Ways.mount,
    Ways.device,
    Ways.disk_device,
    Ways.new_rights,
    Ways.leave_cgroup,
    Ways.kernel,
    Ways.daemon,
    Ways.other_daemon,
)


def main(told: dict[str, Any]) -> None:
    """Tries them all."""
    ways = Ways(told)
    found: dict[str, str] = {}
    for way in ALL:
        try:
            way(ways)
        except OSError as error:
            found[way.__name__] = f"stopped: {error}"
        else:
            found[way.__name__] = "open"
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
