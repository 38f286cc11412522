"""The ways out that a job tries, and what each mode of isolation does about them.

`docs/concepts/isolation.md` shows this table, and `test_ways_out.py` has a job try all of them.
"""

from typing import Final, Literal, NamedTuple

Outcome = Literal["stopped", "open", "depends"]

MODES: Final = ("process", "user", "sandbox", "container")
STOPPED: Final[Outcome] = "stopped"
OPEN: Final[Outcome] = "open"
DEPENDS: Final[Outcome] = "depends"  # on other settings of the machine: nothing is promised


class Way(NamedTuple):
    """One way out: its function in `escape.py`, what it does, and what comes of it in each mode."""

    name: str
    text: str
    process: Outcome
    user: Outcome
    sandbox: Outcome
    container: Outcome = "stopped"

    def outcome(self, mode: str) -> Outcome:
        """What comes of it in this mode."""
        found: Outcome = getattr(self, mode)
        return found


WAYS: Final = (
    Way("token", "read the worker's token", STOPPED, STOPPED, STOPPED),
    Way("admin_token", "read a file in the data directory (`admin-token`)", STOPPED, STOPPED,
        STOPPED),
    Way("record", "change the keeper's record", STOPPED, STOPPED, STOPPED),
    Way("state", "write into the worker's state directory", STOPPED, STOPPED, STOPPED),
    Way("home", "read the home directory of the worker's user", OPEN, STOPPED, STOPPED),
    Way("read_scratch", "read the scratch directory of another job", OPEN, STOPPED, STOPPED),
    Way("write_scratch", "write into the scratch directory of another job", OPEN, STOPPED, STOPPED),
    Way("shared_tmp", "leave a file in /tmp for other users", OPEN, OPEN, STOPPED),
    Way("system_file", "write to /etc/passwd", STOPPED, STOPPED, STOPPED),
    Way("shadow", "read /etc/shadow", STOPPED, STOPPED, STOPPED),
    Way("system_folder", "add a file below /usr", STOPPED, STOPPED, STOPPED),
    Way("see_processes", "see processes that are not its own", OPEN, OPEN, STOPPED),
    Way("agent_environ", "read the agent's environment", STOPPED, STOPPED, STOPPED),
    Way("agent_memory", "read the agent's memory", STOPPED, STOPPED, STOPPED),
    Way("agent_files", "list the agent's open files", STOPPED, STOPPED, STOPPED),
    Way("agent_root", "reach files through `/proc/PID/root` of the agent", STOPPED, STOPPED,
        STOPPED),
    Way("bystander_root", "reach files through `/proc/PID/root` of a program of the worker's user",
        STOPPED, STOPPED, STOPPED),
    Way("uncover", "unmount what covers the data directory, as root of a user namespace", STOPPED,
        STOPPED, STOPPED),
    Way("keeper_memory", "read the keeper's memory", STOPPED, STOPPED, STOPPED),
    Way("keeper_socket", "take the keeper's socket (`pidfd_getfd`)", STOPPED, STOPPED, STOPPED),
    Way("job_environ", "read the environment of another job, with its secrets", STOPPED, STOPPED,
        STOPPED),
    Way("trace_agent", "trace the agent", STOPPED, STOPPED, STOPPED),
    Way("trace_job", "trace another job", STOPPED, STOPPED, STOPPED),
    Way("signal_agent", "signal the agent", STOPPED, STOPPED, STOPPED),
    Way("signal_keeper", "signal the keeper", STOPPED, STOPPED, STOPPED),
    Way("signal_job", "signal another job", STOPPED, STOPPED, STOPPED),
    Way("job_socket", "submit jobs in another job's name", STOPPED, STOPPED, STOPPED),
    Way("file_socket", "connect to a socket in another job's directory", OPEN, STOPPED, STOPPED),
    Way("abstract_socket", "connect to an abstract socket of another job", STOPPED, STOPPED,
        STOPPED, DEPENDS),
    Way("shared_memory", "attach the System V shared memory of another job", OPEN, STOPPED,
        STOPPED),
    Way("network", "reach the network, unless it has `network: none`", OPEN, OPEN, OPEN, OPEN),
    Way("user_namespace", "become root in a user namespace", DEPENDS, DEPENDS, STOPPED, DEPENDS),
    Way("mount", "mount a file system", STOPPED, STOPPED, STOPPED),
    Way("device", "make a device file", STOPPED, STOPPED, STOPPED),
    Way("disk_device", "open a disk of the machine", STOPPED, STOPPED, STOPPED),
    Way("new_rights", "gain rights through a setuid program", STOPPED, STOPPED, STOPPED),
    Way("leave_cgroup", "move to another cgroup", STOPPED, STOPPED, STOPPED),
    Way("kernel", "use kernel interfaces such as keyrings, bpf or io_uring", DEPENDS, DEPENDS,
        STOPPED, DEPENDS),
    Way("daemon", "outlive the job as a daemon", STOPPED, STOPPED, STOPPED),
    Way("other_daemon", "outlive the job as a daemon in the name of another job that still runs",
        OPEN, STOPPED, STOPPED),
)  # fmt: skip


def table() -> list[str]:
    """The lines of the table in the documentation."""
    shown = {STOPPED: "stopped", OPEN: "**open**", DEPENDS: "depends"}
    lines = [f"| a job tries to | {' | '.join(f'`{mode}`' for mode in MODES)} |"]
    lines.append("|---" * (1 + len(MODES)) + "|")
    return lines + [
        f"| {way.text} | {' | '.join(shown[way.outcome(m)] for m in MODES)} |" for way in WAYS
    ]
