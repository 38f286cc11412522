"""Processes of a test: a port for them, and their end with the test run."""

import contextlib
import ctypes
import random
import signal
import socket
from pathlib import Path

PR_SET_PDEATHSIG = 1


def free_port() -> int:
    """A port of loopback that nobody uses now, and that the kernel gives nobody by itself."""
    given_by_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_240, given_by_kernel)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def die_with_parent() -> None:
    """Between fork and exec: the process is to be killed when this one ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
