"""A small media farm: sources fail, workers and a server are killed, and every job ends well."""

from pathlib import Path

from benchmarks import sla
from tests.support.fleet import TIMES
from tests.support.running import run

JOBS = 150
JOBS_PER_SECOND = 25
# A busy machine may start jobs late; that none waits for ever is what counts here.
TARGET_S = {"live": 120.0, "default": 120.0, "batch": 120.0}
# A lost worker is known to be lost soon; the rule for bad workers is as by default.
SHORT_TIMES = TIMES[: TIMES.index("bad_worker_jobs=0") - 1]


def test_every_job_starts_in_time_and_ends_correctly(tmp_path: Path, postgres_dsn: str) -> None:
    played = run(sla.play(tmp_path, postgres_dsn, JOBS, JOBS_PER_SECOND, "auto", SHORT_TIMES))
    ended = played.ended
    assert len(ended) == JOBS
    said = "\n".join(sla.lines(ended, TARGET_S))
    assert sla.misses(ended, TARGET_S) == [], said
    assert "all          150" in said
    assert played.suspected == []
    assert sum(job.has_completed for job in ended) == JOBS - sla.GONE


def test_what_waits_too_long_or_ends_wrong_is_not_counted() -> None:
    job = sla.Ended("live", 9.0, True, True, 0.0, "shell: completed")
    late = sla.Ended("live", 11.0, True, True, 23.0, "shell: completed")
    never = sla.Ended("live", None, False, False, 30.0, "shell: queued")
    wrong = sla.Ended("live", 1.0, False, True, 30.0, "python: completed")
    ended = (job, late, never, wrong)
    assert [sla.is_good(each, sla.TARGET_S) for each in ended] == [True, *[False] * 3]
    assert sla.misses(ended, sla.TARGET_S) == [
        "1 late in live, due 20 s on",
        "1 wrong in live: python: completed",
        "1 wrong in live: shell: queued",
    ]
