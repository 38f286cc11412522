"""A real Slurm cluster of one node on loopback, for tests; its programs come from Debian."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.support.debian import find_program
from tests.support.loopback import die_with_parent, free_port

START_SECONDS = 60

# Nobody else can reach it, so that no keys are needed; jobs share the node's processors.
CONFIGURATION = """
ClusterName=windlass
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={node_port}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
KillWait=5
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES OverSubscribe=FORCE:8 MaxTime=INFINITE State=UP
"""


class Slurm(NamedTuple):
    """A running cluster; programs find it by `SLURM_CONF`."""

    folder: Path
    processes: "tuple[subprocess.Popen[bytes], ...]"

    @property
    def conf(self) -> str:
        return str(self.folder / "slurm.conf")

    def names(self) -> list[str]:
        """The jobs that have not ended."""
        words = ["squeue", "--noheader", "--format=%j"]
        return sorted(_run(words, self.conf).stdout.decode().split())

    def stop(self) -> None:
        """Cancel all jobs, and end the daemons."""
        user = _run(["id", "-un"], self.conf).stdout.decode().strip()
        _run(["scancel", f"--user={user}", "--full", "--signal=KILL"], self.conf)
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(START_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start_slurm() -> Slurm:
    """Start controller and node, and wait until the node takes jobs."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    for name in ("state", "spool"):
        (folder / name).mkdir()
    host = socket.gethostname().partition(".")[0]
    user = subprocess.run(["id", "-un"], capture_output=True, check=True).stdout.decode().strip()
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            host=host, port=free_port(), node_port=free_port(), user=user, folder=folder
        )
    )
    conf = str(folder / "slurm.conf")
    commands = (["slurmctld", "-D", "-c"], ["slurmd", "-D", "-c"])
    cluster = Slurm(folder, tuple(_start(command, conf) for command in commands))
    deadline = time.monotonic() + START_SECONDS
    while b"idle" not in _run(["sinfo", "--noheader", "--format=%t"], conf).stdout:
        if time.monotonic() > deadline or any(p.poll() is not None for p in cluster.processes):
            logs = "".join(log.read_text()[-1_000:] for log in folder.glob("*.log"))
            cluster.stop()
            raise RuntimeError(f"Slurm did not start: {logs}")
        time.sleep(0.1)
    return cluster


def _start(command: list[str], conf: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [find_program(command[0]) or command[0], *command[1:]],
        env={**os.environ, "SLURM_CONF": conf},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - no threads here
    )


def _run(words: list[str], conf: str) -> "subprocess.CompletedProcess[bytes]":
    env = {**os.environ, "SLURM_CONF": conf}
    return subprocess.run(words, env=env, capture_output=True, check=False, timeout=START_SECONDS)
