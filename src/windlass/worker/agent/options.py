"""The options of a worker."""

from pathlib import Path
from typing import Any

import msgspec

from windlass.domain.job.forms import JobLimits
from windlass.worker.attempt.secrets import Secrets
from windlass.worker.isolation.job_users import DEFAULT_RANGE


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`state` is a directory of the agent's own. `metadata` is reported besides what is detected.

    `secrets` are given to jobs that name them; `imports` are modules whose named functions it runs,
    `apps` packages that it imports with all submodules, `allowed_imports` patterns of modules whose
    functions jobs may name (empty: all but the standard library and Windlass). `cgroup` is a cgroup
    v2 folder for jobs, `auto` or `off`. `variables` is added to the environment of jobs; `code` is
    the single-use code of a first enrolment; `drain_limit_ms` is how long a drain waits for jobs
    (None: as the server says). Without `keeps_token` the worker's secret is never written to
    `state`: it enrols with a new code each time it starts. With `pins`, jobs run only on the
    processors whose indices they hold. `isolation` is the weakest mode in which it runs jobs, or
    `auto`; `uids` are the uids for jobs if it is root. `shares` are folders that jobs in a sandbox
    can read, `hides` folders they must not see. `limits` are the maximum that a job may use.
    `container_engine` is `auto`, `off`, or the engine that runs the containers of jobs. If it
    `trusts_jobs`, jobs in the mode `process` can do everything its user can, such as use sudo.
    `namespaces` are those whose jobs it takes; without any, a worker in the mode `process` that
    does not trust its jobs takes only those of `default`, and any other takes all.
    """

    name: str
    state: Path
    slots: int = 1
    metadata: dict[str, Any] = {}
    cgroup: str = "auto"
    variables: dict[str, str] = {}
    imports: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    allowed_imports: tuple[str, ...] = ()
    secrets: Secrets = msgspec.field(default_factory=Secrets)
    code: str | None = None
    drain_limit_ms: int | None = None
    keeps_token: bool = True
    pins: bool = False
    isolation: str = "process"
    uids: str = DEFAULT_RANGE
    shares: tuple[Path, ...] = ()
    hides: tuple[Path, ...] = ()
    limits: JobLimits | None = None
    container_engine: str = "off"
    trusts_jobs: bool = False
    namespaces: tuple[str, ...] = ()
