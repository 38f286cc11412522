"""The options for what a worker offers to jobs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from windlass.cli.options.flags import Flag, Many
from windlass.domain.job.forms import read_limits
from windlass.domain.matching.room import parse_offer
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name
from windlass.worker.agent.environment import named_variables
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.attempt.secrets import load_secrets
from windlass.worker.isolation.container_engine import check_engine
from windlass.worker.isolation.job_users import DEFAULT_RANGE

IMPORT_VARIABLE: Final = "WINDLASS_IMPORT"  # space-separated modules
APP_VARIABLE: Final = "WINDLASS_APP"  # space-separated packages
PASS_VARIABLE: Final = "WINDLASS_PASS_ENV"  # space-separated patterns
FILE_VARIABLE: Final = "WINDLASS_ENV_FILE"
ISOLATION_VARIABLE: Final = "WINDLASS_ISOLATION"
NAMESPACES_VARIABLE: Final = "WINDLASS_NAMESPACES"
# Other users can read a command line, but not its environment.
Code = Annotated[str | None, Parameter(env_var="WINDLASS_CODE", show_env_var=False)]
Mode = Annotated[
    Literal["auto", "process", "user", "sandbox", "container"],
    Parameter(env_var=ISOLATION_VARIABLE, show_env_var=False, show_choices=False),
]
Engine = Annotated[str, Parameter(env_var="WINDLASS_CONTAINER_ENGINE", show_env_var=False)]
Imports = Annotated[
    list[str] | None,
    Parameter(name="--import", env_var=IMPORT_VARIABLE, consume_multiple=False),
]
Apps = Annotated[
    list[str] | None,
    Parameter(name="--app", env_var=APP_VARIABLE, consume_multiple=False),
]
PassEnv = Annotated[
    list[str] | None, Parameter(env_var=PASS_VARIABLE, show_env_var=False, consume_multiple=False)
]
Namespaces = Annotated[str | None, Parameter(env_var=NAMESPACES_VARIABLE, show_env_var=False)]
EnvFile = Annotated[Path | None, Parameter(env_var=FILE_VARIABLE, show_env_var=False)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class JobVariables:
    """Variables that jobs see, besides a short list; never those that start with WINDLASS_.

    Parameters
    ----------
    env
        NAME or NAME=VALUE: an environment variable for all jobs; other users of the machine can
        read a VALUE here. Repeatable.
    env_file
        A file of NAME=VALUE lines for all jobs. Also WINDLASS_ENV_FILE.
    pass_env
        A pattern of the worker's own variables that all jobs see, such as 'DJANGO_*'. Repeatable.
        Also WINDLASS_PASS_ENV, with spaces between patterns.
    """

    env: Many = None
    env_file: EnvFile = None
    pass_env: PassEnv = None

    def read(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Returns the variables; raises `InvalidInput`."""
        return named_variables(environ, self.env or (), self.env_file, self.pass_env or ())


NO_VARIABLES: Final = JobVariables()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Offers:
    """What jobs can use on this worker.

    Parameters
    ----------
    slots
        How many jobs it runs at the same time. Default: 1, or as many as --resources allow.
    resources
        What jobs share, such as cpus=8,licences=4; as many jobs run as fit. With a list, such as
        gpus=[0,1], ports=[8000-8009] or licences=['a','b'], each job is told which ones it has.
        Default: the GPUs that nvidia-smi or rocm-smi lists; gpus=[] offers none.
    pin_cpus
        Run each job only on the processors it has; needs a list such as cpus=[0-7].
    modules
        A module with tasks (`@windlass.task(name=…)`) to run. Repeatable.
    apps
        A package of yours: it is imported with all modules below it, and their functions are
        reported. Repeatable.
    allow_import
        A module whose functions `python` jobs may name, with those below it; or a pattern such
        as app.tasks.*. Repeatable. Default: all modules but the standard library and Windlass.
    secret
        NAME=@FILE or NAMESPACE/NAME=@FILE: a secret for jobs. Repeatable.
    secrets
        A directory of secrets, one file each; those in NAMESPACE/ are for that namespace only.
    cgroup
        A cgroup v2 directory for its jobs; auto uses one that was delegated to the worker, off
        uses none.
    isolation
        How strictly jobs are separated from the worker and from each other: auto, process, user,
        sandbox or container. Queues and jobs can demand more, never less. Also
        WINDLASS_ISOLATION.
    container_engine
        What runs jobs in containers: podman, docker, nerdctl or the path of one of them; auto uses
        the first that works, off none. Also WINDLASS_CONTAINER_ENGINE.
    uids
        The user ids of jobs with isolation, if the worker is root.
    share
        A directory that jobs in a sandbox can read, beside those of the system. Repeatable.
    hide
        A directory to hide from jobs, beside the data directory of a server here. Repeatable.
        Also WINDLASS_HIDE, with colons between directories.
    namespaces
        The namespaces whose jobs it takes, comma-separated; '*' is all. Default: all, but with
        isolation process, where jobs can get at each other's files, only `default`. Also
        WINDLASS_NAMESPACES.
    trust_jobs
        With isolation process, let jobs do all that this user can: use sudo and other setuid
        programs, signal the worker, open its token and the data directory.
    limit
        The most that a job may use: memory, cpu_time, processes, disk; and open_files for each of
        its processes. NAME=AMOUNT; repeatable.
    """

    slots: int | None = None
    resources: str | None = None
    pin_cpus: Flag = False
    modules: Imports = None
    apps: Apps = None
    allow_import: Many = None
    secret: Many = None
    secrets: Path | None = None
    cgroup: str = "auto"
    isolation: Mode = "auto"
    container_engine: Engine = "auto"
    uids: str = DEFAULT_RANGE
    share: Many = None
    hide: Many = None
    namespaces: Namespaces = None
    trust_jobs: Flag = False
    limit: Many = None

    def options(
        self,
        name: str,
        state: Path,
        code: str | None,
        environ: Mapping[str, str],
        variables: JobVariables = NO_VARIABLES,
    ) -> WorkerOptions:
        """Returns the worker's options; raises `InvalidInput`."""
        if self.slots is not None and self.slots < 1:
            raise InvalidInput("slots", "at least 1", self.slots)
        check_engine(self.container_engine)
        usable = os.sched_getaffinity(0)
        offer = parse_offer(self.resources or "", len(usable), usable if self.pin_cpus else None)
        return WorkerOptions(
            name=name,
            state=state,
            slots=self.slots or (1 if offer is None else offer.slots),
            metadata={} if offer is None else offer.metadata,
            code=code,
            imports=tuple(self.modules or ()),
            apps=tuple(self.apps or ()),
            allowed_imports=tuple(self.allow_import or ()),
            secrets=load_secrets(environ, self.secret or (), self.secrets),
            cgroup=self.cgroup,
            isolation=self.isolation,
            container_engine=self.container_engine,
            uids=self.uids,
            shares=tuple(Path(path) for path in self.share or ()),
            hides=tuple(Path(path) for path in self.hide or ()),
            trusts_jobs=self.trust_jobs,
            namespaces=named_namespaces(self.namespaces),
            limits=read_limits(self.limit, "--limit") if self.limit else None,
            pins=self.pin_cpus,
            variables=variables.read(environ),
        )


def named_namespaces(text: str | None) -> tuple[str, ...]:
    """Returns the namespaces in a comma-separated text; raises `InvalidInput`."""
    if text is None:
        return ()
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise InvalidInput("namespaces", "names separated by commas, or '*' for all", text)
    for name in names:
        check_name("namespaces", name)
    return names


NOTHING: Final = Offers()
