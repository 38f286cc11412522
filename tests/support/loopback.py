"""Processes of a test: a port for them, and their end with the test run."""

import ctypes
import signal
import socket

PR_SET_PDEATHSIG = 1


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def die_with_parent() -> None:
    """Between fork and exec: the process is to be killed when this one ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
