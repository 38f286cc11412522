"""`windlass stack`: where the Python function of a running job is."""

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import JobId, Json
from windlass.cli.output.text import BOLD, print_json, say
from windlass.wire.files import Stack


def stack(job: JobId, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show where the Python function of a running job is now; its worker is asked."""
    found = at.call("GET", f"/api/v1/jobs/{job}/stack", Stack)
    if json:
        print_json(found)
        return
    say(f"job {found.job}, attempt {found.attempt} on worker {found.worker}", BOLD)
    for thread in found.threads:
        say(f"\n{thread.name}:")
        for frame in thread.frames:
            say(f"  {frame.file}:{frame.line} in {frame.function}")
            if frame.code:
                say(f"    {frame.code}")
