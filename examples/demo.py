"""`make demo`: a whole installation on this machine, with real work and a real fault.

It starts `windlass up` on a fresh data directory, runs shell jobs, Python functions and
an ffmpeg transcode, a job that fails at first, a workflow with an allowed failure and a retry,
and kills a worker in the middle of a job; it asks why a job waits that no worker can run. Then
it checks that everything ended as it should, and leaves nothing behind.

With `--stay` it goes on as a farm with work in every state, until Ctrl-C, so that there is
something to see in its dashboard.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from examples.demo_farm import PAUSE_SECONDS, Traffic, fill
from examples.demo_fuzzing import describe, start_fuzzing
from examples.demo_tasks import greet, primes_below
from windlass.client.blocking.client import Client
from windlass.client.blocking.handles import JobHandle, Workflow
from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import Job
from windlass.messages.system import Verified
from windlass.providers.local import workers_below
from windlass.tasks.task import named

ROOT = Path(__file__).parent.parent
SHELL_JOBS = 20
PATIENCE_SECONDS = 120.0

console = Console()


class Installation:
    """`windlass up` as a process of its own."""

    def __init__(self, data: Path, solver: Path | None = None) -> None:
        self.data = data
        self.solver = solver
        shown = [] if solver is None else ["--fuzz", str(solver)]
        environment = {
            **os.environ,
            "WINDLASS_DATA": str(data),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "windlass", "up", "--port", "0", "--workers", "2",
             "--namespaces", "*", "--slots", "2", "--data", str(data),
             "--import", "examples.demo_tasks", *shown],
            env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        for line in self.process.stdout:
            console.print(line.rstrip(), style="dim", highlight=False, soft_wrap=True)
            if "try:" in line:
                return
        raise SystemExit("windlass up ended before it was ready")

    def is_up(self, seconds: float) -> bool:
        """Waits for a time, or until the server ends; returns whether it goes on."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    def stop(self) -> None:
        """As an operator would: SIGTERM, and wait."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=90)


def shell(name: str, *argv: str, **options: Any) -> JobSpec:
    """A job that runs a program."""
    return named("shell").options(name=name, **options).job(argv=list(argv))


def workload() -> list[JobSpec]:
    """What the demo runs, but for the job whose worker is killed."""
    jobs = [shell(f"step-{n}", "sh", "-c", f"echo step {n} of job $WINDLASS_JOB")
            for n in range(SHELL_JOBS)]  # fmt: skip
    jobs += [primes_below.job(200_000 * n) for n in range(1, 4)]
    jobs.append(greet.job("fleet"))
    jobs.append(
        JobSpec(
            task="ffmpeg",
            name="transcode",
            args={
                "inputs": [{"url": "testsrc=duration=3:size=320x240:rate=25", "format": "lavfi"}],
                "output": "clip.mp4",
                "codec": "libx264",
                "duration": 3,
            },
        )
    )
    jobs.append(
        JobSpec(
            task="shell",
            name="fails-once",
            args={"argv": ["sh", "-c", "test $WINDLASS_ATTEMPT -ge 2"]},
            retry_on=("execution",),
        )
    )
    return jobs


def diamond(client: Client) -> Workflow:
    """Two jobs between a first and a last one: one may fail, the other does so at first."""
    with client.workflow("diamond") as flow:
        fetch = flow.submit(shell("fetch", "echo", "fetched"))
        lint = flow.submit(shell("lint", "false", after=fetch, allow_failure=True))
        script = "test $WINDLASS_ATTEMPT -ge 2"
        test = flow.submit(shell("test", "sh", "-c", script, after=fetch, retry_on=["execution"]))
        flow.submit(shell("publish", "echo", "published", after=[lint, test]))
    return flow


def check_diamond(flow: Workflow) -> None:
    """It completes, with the failure that it allows and one retry."""
    info = flow.wait(PATIENCE_SECONDS)
    jobs = {job.name: job for job in flow.jobs()}
    states = {name: job.state for name, job in jobs.items()}
    summary = ", ".join(f"{name} {state}" for name, state in states.items())
    console.print(f"workflow {info.id} {info.name}: {info.state} ({summary})", highlight=False)
    bad = [name for name, state in states.items() if state != "completed"]
    if info.state != "completed" or bad != ["lint"] or jobs["test"].attempt < 2:
        raise SystemExit(f"the diamond should have completed but for lint: {info.state}, {summary}")


def explain_a_wait(client: Client) -> None:
    """A job that no worker here can run, and the one behind it: both say why they wait."""
    with client.workflow("too-large") as flow:
        large = flow.submit(shell("needs-8TiB", "true", requires="memory>=8TiB"))
        behind = flow.submit(shell("behind-it", "true", after=large))
    found = behind.explain()
    console.print(f"job {found.job} {found.summary}", style="yellow", highlight=False)
    for worker in large.explain().workers:
        console.print(f"  {worker.text}", highlight=False)
    change = found.smallest_change
    if change is None or "with memory ≥ 8 TiB" not in change.text:
        raise SystemExit(f"explain should have named what is missing: {change}")
    console.print(f"  what would let it run: {change.text}", highlight=False)
    flow.cancel("shown")


def kill_worker_of(job: JobHandle[Any], data: Path) -> None:
    """Wait until the job runs, then kill −9 the agent that runs it, not the job itself."""
    for chunk in job.logs(follow=True):
        if b"running" not in chunk:
            continue
        agent = agent_called(job.info().worker or "", data)
        console.print(f"killing worker process {agent} while it runs job {job.id}", style="red")
        os.kill(agent, signal.SIGKILL)
        return


def agent_called(name: str, data: Path) -> int:
    """The process of a worker of this installation."""
    for pid in workers_below(data):
        if name in Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
            return pid
    raise SystemExit(f"no process of worker {name!r} was found")


def watch(jobs: Sequence[JobHandle[Any]]) -> list[Job]:
    """Wait for all jobs, with a bar."""
    ended: list[Job] = []
    with Progress(console=console) as progress:
        bar = progress.add_task("jobs", total=len(jobs))
        for job in jobs:
            ended.append(job.wait(PATIENCE_SECONDS))
            progress.advance(bar)
    return ended


def summary(jobs: Sequence[Job]) -> None:
    """A table of what happened."""
    table = Table(title="What happened")
    for column in ("job", "task", "state", "attempts", "worker", "result"):
        table.add_column(column)
    for job in jobs[SHELL_JOBS - 1 :]:
        result = str(job.result)[:40] if job.result is not None else ""
        table.add_row(
            f"{job.id} {job.name or ''}", job.task, job.state, str(job.attempt),
            job.worker or "", result,
        )  # fmt: skip
    console.print(table)


def check(client: Client, jobs: Sequence[Job], killed: Job) -> None:
    """Fail loudly if anything is not as promised."""
    bad = [job for job in jobs if job.state != "completed"]
    if bad:
        raise SystemExit(f"not completed: {[(j.id, j.state, j.reason) for j in bad]}")
    reasons = [move.reason for move in client.job(killed.id).info().transitions]
    if killed.attempt < 2 or not any("was restarted" in (reason or "") for reason in reasons):
        raise SystemExit(f"the job of the killed worker should have been tried again: {reasons}")
    transport = client.asynchronous.transport
    found = client.run(transport.call("POST", "/api/v1/verify", Verified))
    if found.violations:
        raise SystemExit(f"verify: {found.violations}")
    console.print("verify: the log replays to the state, the invariants hold", style="green")


def stay(client: Client, installation: Installation) -> None:
    """Leaves a farm at work until Ctrl-C, or until the server ends."""
    fill(client)
    link = subprocess.run(
        [sys.executable, "-m", "windlass", "dashboard", "--data", str(installation.data)],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    console.print(f"the farm is at work; its dashboard: {link}", style="bold green", soft_wrap=True)
    console.print("Ctrl-C ends it and removes everything", highlight=False)
    traffic = Traffic(client)
    fuzzing = None if installation.solver is None else start_fuzzing(installation.solver)
    try:
        while installation.is_up(PAUSE_SECONDS):
            traffic.wave()
    except KeyboardInterrupt:
        console.print("ending the farm")
    finally:
        if fuzzing is not None:
            fuzzing.terminate()
            fuzzing.wait()


def end_as_with_ctrl_c() -> None:
    """Lets a closed terminal, or whoever stops this process, end everything as Ctrl-C does."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def main() -> None:
    """Run the demo."""
    end_as_with_ctrl_c()
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--stay", action="store_true", help="leave it running, with its dashboard")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="windlass-demo-") as folder:
        data = Path(folder) / "data"
        # Without git there is nothing to fuzz, and the rest works.
        fuzzes = asked.stay and which("git") is not None
        installation = Installation(data, describe(Path(folder)) if fuzzes else None)
        try:
            with Client(data=data) as client:
                jobs = client.submit_many(workload())
                flow = diamond(client)
                script = "echo running; test $WINDLASS_ATTEMPT -ge 2 || sleep 60"
                doomed = client.submit(shell("loses-its-worker", "sh", "-c", script))
                kill_worker_of(doomed, data)
                ended = watch([*jobs, doomed])
                summary(ended)
                check_diamond(flow)
                explain_a_wait(client)
                check(client, ended, ended[-1])
                if asked.stay:
                    stay(client, installation)
        finally:
            installation.stop()
    console.print("done: nothing lost, nothing doubled, nothing left running", style="bold green")


if __name__ == "__main__":
    main()
