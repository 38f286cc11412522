"""Where a pipeline's parts are chosen: buckets by their address, and what surrounds them."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.values.errors import InvalidInput
from windlass.fuzzing.board import Board
from windlass.fuzzing.bucket import Bucket
from windlass.fuzzing.bucket_directory import DirectoryBucket
from windlass.fuzzing.bucket_dry import DryBucket
from windlass.fuzzing.chain import Around
from windlass.fuzzing.checkout import Mirror
from windlass.fuzzing.commits import Commits
from windlass.fuzzing.commits_git import GitCommits
from windlass.fuzzing.commits_github import GitHubCommits
from windlass.fuzzing.github import GitHub, project_of
from windlass.fuzzing.probe import probe
from windlass.fuzzing.solver import Solver


def open_bucket(url: str, *, make: bool = True) -> Bucket:
    """`s3://bucket/prefix`, `file:///directory`, or a path, which is made if it is not there."""
    parts = urlsplit(url)
    if parts.scheme == "s3":
        try:
            from windlass.fuzzing.bucket_s3 import S3Bucket
        except ImportError:
            needed = "a directory, unless S3 is installed: pip install 'windlass[s3]'"
            raise InvalidInput("bucket", needed, url) from None
        return S3Bucket(parts.netloc, parts.path.strip("/"))
    if parts.scheme == "file":
        return DirectoryBucket(Path(parts.path), make=make)
    if not parts.scheme and url:
        return DirectoryBucket(Path(url), make=make)
    raise InvalidInput("bucket", "s3://bucket/prefix, file:///directory or a path", url)


def real_around() -> Around:
    """The time and chance of this machine."""
    return Around(RealClock(), RealChance(), RealSecrets())


def own_name() -> str:
    """Who holds a lease, for people: machine, process, and the job if it is one."""
    job = os.environ.get("WINDLASS_JOB") or os.environ.get("GITHUB_RUN_ID")
    host = f"{os.uname().nodename}:{os.getpid()}"
    return f"{host} (job {job})" if job else host


def open_commits(solver: Solver, folder: Path, around: Around) -> Commits:
    """Where the solver's new commits come from; a mirror of its repository is kept in `folder`."""
    settings = solver.commits
    if settings.source == "git":
        mirror = Mirror(solver.repository, folder / "mirror.git")
        return GitCommits(mirror, solver.branch, solver.repository)
    project = settings.project or project_of(solver.repository)
    token = os.environ.get("GITHUB_TOKEN")
    return GitHubCommits(GitHub(settings.api, project, token, around.clock), solver.branch)


async def open_board(
    url: str,
    solver: str,
    around: Around | None = None,
    *,
    dry_run: bool = False,
    reading: bool = False,
) -> Board:
    """The state of a solver in a bucket that keeps its conditions; for `reading` it need not."""
    around = around or real_around()
    bucket = open_bucket(url, make=not (dry_run or reading))
    if dry_run:
        bucket = DryBucket(bucket)
    if not reading:
        await probe(bucket, solver, around)
    return Board(bucket, solver, around, own_name())
