"""Windlass in one process: `Client.embedded`, which runs the jobs it was given.

As with the peers, the file is filled before anybody runs its jobs, and the clock starts
once a twentieth of them is done. The times are those recorded with the jobs: a client that
waits for one may hear of its end late, and would start the clock too late with it.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.fleet import over_http
from benchmarks.measure import Lap, Watch
from benchmarks.peers.draining import WARM
from windlass import Client
from windlass.domain.job.job import JobSpec
from windlass.domain.values.quantities import parse_moment


def drain(path: Path, jobs: Sequence[JobSpec], slots: int) -> tuple[Lap, Lap]:
    """Submit `jobs` to a new file, then let them run; a lap for each of the two."""
    with Client.embedded(path, workers=0) as client:
        watch = Watch()
        ids = [
            handle.id
            for first in range(0, len(jobs), over_http.CHUNK)
            for handle in client.submit_many(jobs[first : first + over_http.CHUNK])
        ]
        submitted = watch.lap(len(ids))
    with Client.embedded(path, workers=slots) as client:
        client.job(ids[-1]).wait(over_http.END_SECONDS)
        over_http.until_ended(client)
        ended = over_http.expect_completed(client, ids)
    times = [parse_moment(job.finished_at or "", "finished_at") for job in ended]
    return submitted, window(times)


def window(ends: Sequence[int]) -> Lap:
    """From the end of the first twentieth of some jobs to the end of the last; from ms."""
    times = sorted(ends)
    began = times[len(times) // WARM]
    # At least a millisecond, which is as exact as the record is.
    return Lap(sum(at > began for at in times), max(1, times[-1] - began) / 1000)
