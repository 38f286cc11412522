"""Workers as jobs of a Slurm cluster: `sbatch` starts them, `squeue` lists them.

The token is the name of the Slurm job and the pool is in its comment, so that a job whose number
was lost in a crash is found again and never submitted twice.
"""

from collections.abc import Sequence
from typing import Final

from windlass.domain.pools.pools import Pool
from windlass.ports.provider import Machine, Order, Owner, ProviderFault
from windlass.providers.command import run
from windlass.providers.options import Options

# Jobs in these states exist or will; all others have ended.
_STATES: Final = "PENDING,CONFIGURING,RUNNING,SUSPENDED,COMPLETING,STOPPED,RESIZING,REQUEUED"
# A worker is asked to stop before its time limit, so that it can hand back its jobs.
_NOTICE: Final = "--signal=B:TERM@90"
_UNKNOWN: Final = "Invalid job id"


class SlurmProvider:
    """The options become arguments of `sbatch`: partition, account, qos, time and `arguments`."""

    settle_ms = 10_000
    host = ""

    def __init__(self, pool: Pool) -> None:
        options = Options(pool.options)
        self._flags = [
            f"--{name}={value}"
            for name in ("partition", "account", "qos", "time", "chdir", "output")
            if (value := options.optional(name)) is not None
        ]
        if any(flag.startswith("--time=") for flag in self._flags):
            self._flags.append(_NOTICE)
        self._words = options.words("arguments", ())
        self._setup = options.text("setup", "")
        self._path = options.optional("programs")
        options.done()

    async def launch(self, order: Order) -> Machine:
        """Submits the agent as a batch job unless one of this name exists."""
        for machine in await self.find(order.owner):
            if machine.token == order.token:
                return machine
        words = [
            self._program("sbatch"), "--parsable", f"--job-name={order.token}",
            f"--comment={_comment(order.owner)}", "--no-requeue", "--export=NONE", *self._flags,
            *self._words,
        ]  # fmt: skip
        output = await run(words, given=order.script(self._setup))
        number = output.strip().partition(";")[0]
        if not number.isdigit():
            raise ProviderFault(f"sbatch printed {output[:100]!r}; expected the number of a job")
        return Machine(order.token, number)

    async def find(self, owner: Owner) -> Sequence[Machine]:
        """Returns the jobs that have not ended and name the pool in their comment."""
        words = [self._program("squeue"), "--noheader", "--me", f"--states={_STATES}"]
        output = await run([*words, "--Format=JobID:|,Name:|,Comment:|"])
        found: list[Machine] = []
        for line in output.splitlines():
            number, name, comment, *_ = [*(part.strip() for part in line.split("|")), "", "", ""]
            if comment == _comment(owner):
                found.append(Machine(name, number))
        return found

    async def terminate(self, machines: Sequence[Machine]) -> None:
        """Cancels the jobs; those that Slurm no longer knows have ended."""
        for machine in machines:
            try:
                await run([self._program("scancel"), machine.id])
            except ProviderFault as fault:
                if _UNKNOWN not in str(fault):
                    raise

    def _program(self, name: str) -> str:
        return f"{self._path}/{name}" if self._path else name


def _comment(owner: Owner) -> str:
    return f"windlass:{owner.installation}:{owner.pool}"
