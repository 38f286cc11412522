"""Opens a pipeline: chooses the bucket by its URL and supplies the real clock."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from windlass.clock import RealChance, RealClock, RealSecrets
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.buckets.bucket import Bucket
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.buckets.dry_run import DryRunBucket
from windlass_fuzz.buckets.probe import probe
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.state_file import Runtime

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def open_bucket(url: str, *, make: bool = True) -> Bucket:
    """Opens `s3://bucket/prefix`, `file:///directory` or a path; creates a missing directory."""
    parts = urlsplit(url)
    if parts.scheme == "s3":
        try:
            from windlass_fuzz.buckets.s3 import S3Bucket
        except ImportError:
            raise InvalidSetting(
                "bucket",
                f"cannot open {url}: S3 support is not installed; run pip install 'windlass[s3]'",
                url,
            ) from None
        check_bucket_name(parts.netloc)
        return S3Bucket(parts.netloc, parts.path.strip("/"))
    folder = directory_of(url)
    if folder is not None:
        return DirectoryBucket(folder, make=make)
    raise InvalidInput("bucket", "s3://bucket/prefix, file:///directory or a path", url)


def directory_of(url: str) -> Path | None:
    """Returns the directory that an address names; None if it names something else."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            message = f"{url} names the host {parts.netloc}; write file:///directory, or a path"
            raise InvalidSetting("bucket", message, url)
        return Path(parts.path)
    return Path(url) if url and not parts.scheme else None


def check_bucket_name(name: str) -> None:
    """Refuses names that S3 does not allow, before a server answers with something else."""
    if not _BUCKET.fullmatch(name) or ".." in name:
        rule = "3 to 63 lower-case letters, digits, '-' and '.', starting with a letter or digit"
        raise InvalidInput("bucket", f"the name of an S3 bucket ({rule})", name)


def real_runtime() -> Runtime:
    """Returns the clock and randomness of this machine."""
    return Runtime(RealClock(), RealChance(), RealSecrets())


def holder_name() -> str:
    """Returns the name to show for our leases: machine, process, and job if there is one."""
    job = os.environ.get("WINDLASS_JOB") or os.environ.get("GITHUB_RUN_ID")
    host = f"{os.uname().nodename}:{os.getpid()}"
    return f"{host} (job {job})" if job else host


async def open_pipeline(
    url: str,
    solver: str,
    runtime: Runtime | None = None,
    *,
    dry_run: bool = False,
    reading: bool = False,
    matrix: Sequence[str] = (),
) -> Pipeline:
    """Opens a solver's state; checks the bucket's conditional writes unless only `reading`."""
    runtime = runtime or real_runtime()
    bucket = open_bucket(url, make=not (dry_run or reading))
    if dry_run:
        bucket = DryRunBucket(bucket)
    if not reading:
        await probe(bucket, solver, runtime.nonce)
    return Pipeline(bucket, solver, runtime, holder_name(), matrix)
