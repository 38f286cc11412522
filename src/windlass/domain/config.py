"""All settings of an installation in one type, each with its unit, default and meaning.

`validate` refuses contradictory values before anything starts.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from windlass.domain.access.http_limits import HttpLimits, check_http
from windlass.domain.access.policy import AccessPolicy, check_policy
from windlass.domain.lifecycle.rank import AGING_OFF_INTERVAL_MS
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.domain.lifecycle.timeouts import TimeoutPolicy
from windlass.domain.values.addresses import parse_networks
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import Option, check_fields, describe_fields, doc, shown_ms

# The time between the keeper's deadline for killing its jobs and the end of the lease.
LEASE_MARGIN_MS: Final = 5_000


class Config(Struct, frozen=True, kw_only=True):
    """The settings of a server. A file or the command line overrides any of them."""

    heartbeat_interval_ms: Annotated[
        int, doc("A worker sends a heartbeat at least this often.", least=1)
    ] = 30_000
    heartbeat_timeout_ms: Annotated[
        int,
        doc(
            "A worker silent for this long, by default three heartbeats, is lost, and so are its "
            "leases.",
            least=1,
        ),
    ] = 90_000
    term_grace_ms: Annotated[
        int, doc("How long a process may take to stop before it is killed. 0: kill at once.")
    ] = 10_000
    drain_limit_ms: Annotated[
        int, doc("How long loops and agents may take to finish when they are stopped.")
    ] = 60_000

    scheduling_interval_ms: Annotated[
        int, doc("Interval of the scheduling loop, the safety net for missed events.", least=1)
    ] = 2_000
    health_interval_ms: Annotated[
        int, doc("Interval of the health loop: lost workers, overdue jobs.", least=1)
    ] = 5_000
    cleanup_interval_ms: Annotated[
        int, doc("Interval of the cleanup loop: orphans, retries, cascades.", least=1)
    ] = 10_000
    cron_interval_ms: Annotated[
        int, doc("Interval of the cron loop: schedules that are due.", least=1)
    ] = 1_000
    reactions_interval_ms: Annotated[
        int, doc("Interval of the reactions loop: what runs after workflows end.", least=1)
    ] = 1_000
    inbox_interval_ms: Annotated[
        int, doc("Interval of the inbox loop: jobs submitted in users' own transactions.", least=1)
    ] = 500
    statistics_interval_ms: Annotated[
        int,
        doc("Interval of the statistics loop: run times and memory of completed jobs.", least=1),
    ] = 10_000
    series_interval_ms: Annotated[
        int, doc("Interval of the series loop: counts over time.", least=1)
    ] = 10_000
    pools_interval_ms: Annotated[
        int, doc("Interval of the pools loop: starting and stopping workers.", least=1)
    ] = 5_000
    heard_gap_ms: Annotated[
        int,
        doc(
            "If no server has heard from any worker for this long, every lease is extended. A "
            "gap that would end leases always extends them.",
            least=1,
        ),
    ] = 15_000
    stall_timeout_ms: Annotated[
        int,
        doc("The watchdog cancels a workflow that stalls again this long after a repair.", least=1),
    ] = 1_800_000

    aging_interval_ms: Annotated[
        int, doc("A job rises by one level each time it has waited this long. 0: no aging.")
    ] = 300_000
    capability_grace_ms: Annotated[
        int | None,
        doc("A job that no worker can run is rejected after this. 0: at once; never: it waits."),
    ] = 600_000

    reservation_after_ms: Annotated[
        int, doc("A job that has waited this long for room gets a worker reserved. 0: never.")
    ] = 300_000
    fair_share: Annotated[
        int,
        doc(
            "1: jobs of one level are shared fairly among namespaces, by weight. 0: off.",
            "switch",
        ),
    ] = 0

    retry: RetryPolicy = RetryPolicy()
    timeouts: TimeoutPolicy = TimeoutPolicy()
    access: AccessPolicy = AccessPolicy()
    http: HttpLimits = HttpLimits()
    returned_exclusion_ms: Annotated[
        int,
        doc("A worker that hands a job back with a reason is not offered that job for this long."),
    ] = 600_000
    bad_worker_jobs: Annotated[
        int,
        doc(
            "How many different jobs must fail on a worker for infrastructure reasons, far more "
            "often than on its peers, before it is put on probation. 0: never.",
            "jobs",
        ),
    ] = 5
    bad_worker_window_ms: Annotated[
        int,
        doc(
            "The window in which those failures are counted; a probation ends after a window "
            "without any.",
            least=1,
        ),
    ] = 600_000

    batch_requests: Annotated[
        int, doc("Maximum requests in one transaction.", "requests", least=1)
    ] = 1_000
    batch_bytes: Annotated[int, doc("Maximum input in one transaction.", "bytes", least=1)] = (
        8 * 1024 * 1024
    )
    queue_limit: Annotated[
        int,
        doc(
            "New requests are refused as overloaded while this many are waiting.",
            "requests",
            least=1,
        ),
    ] = 10_000
    chunk_rows: Annotated[
        int, doc("Commands that change more rows run in chunks of this size.", "rows", least=1)
    ] = 500
    log_limit: Annotated[
        int,
        doc("A longer job log loses its middle and keeps its start and end. 0: no limit.", "bytes"),
    ] = 256 * 1024 * 1024
    submit_limit: Annotated[
        int, doc("Maximum jobs per submission, and ids per request.", "jobs", least=1)
    ] = 250_000
    payload_limit: Annotated[int, doc("Maximum size of a submitted job.", "bytes", least=1)] = (
        1024 * 1024
    )
    result_limit: Annotated[
        int,
        doc(
            "Maximum result kept in the store; functions store larger ones as artifacts.",
            "bytes",
            least=1,
        ),
    ] = 1024 * 1024
    results_limit: Annotated[
        int,
        doc(
            "Maximum total size of other jobs' results in the arguments of one job.",
            "bytes",
            least=1,
        ),
    ] = 16 * 1024 * 1024
    steps_limit: Annotated[int, doc("Maximum durable steps per job.", "steps", least=1)] = 1_000
    step_limit: Annotated[
        int,
        doc("Maximum size of a step's result, a signal's payload or an answer.", "bytes", least=1),
    ] = 256 * 1024
    signals_limit: Annotated[
        int, doc("Maximum signals kept per namespace.", "signals", least=1)
    ] = 10_000
    upload_limit: Annotated[
        int, doc("Maximum size of a file that a client uploads for jobs.", "bytes", least=1)
    ] = 1024 * 1024 * 1024
    upload_quota: Annotated[
        int, doc("Maximum total size of one namespace's uploads.", "bytes", least=1)
    ] = 16 * 1024 * 1024 * 1024
    upload_retention_ms: Annotated[
        int, doc("An upload that no job uses is removed this long after its last use.", least=1)
    ] = 86_400_000
    bound_ttl_ms: Annotated[
        int, doc("How long a cached lowest rank is used before it is read again.", least=1)
    ] = 30_000

    retention_interval_ms: Annotated[
        int, doc("Interval of the retention loop: old jobs, events and files.", least=1)
    ] = 600_000
    job_retention_ms: Annotated[int, doc("Ended jobs are removed after this. 0: never.")] = (
        30 * 86_400_000
    )
    queue_retention_ms: Annotated[dict[str, int], doc("The same, for each queue named here.")] = {}
    event_retention_ms: Annotated[
        int, doc("Older events are removed and summarised in the baseline. 0: never.")
    ] = 30 * 86_400_000
    series_detail_ms: Annotated[
        int,
        doc("How long counts per minute are kept; counts per ten minutes are kept 7 times longer."),
    ] = 2 * 86_400_000
    series_retention_ms: Annotated[int, doc("How long counts per hour are kept. 0: for ever.")] = (
        400 * 86_400_000
    )
    audit_retention_ms: Annotated[
        int, doc("Older rows of the audit log are removed. 0: never.")
    ] = 90 * 86_400_000
    signal_retention_ms: Annotated[
        int, doc("How long signals are kept for jobs that wait for them later.", least=1)
    ] = 7 * 86_400_000
    blob_retention_ms: Annotated[
        int, doc("Files that nothing refers to are removed after this.", least=1)
    ] = 86_400_000

    webhook_timeout_ms: Annotated[
        int, doc("How long the receiver of a webhook may take to answer.", least=1)
    ] = 10_000
    webhook_networks: Annotated[
        tuple[str, ...], doc("Private networks that webhooks may reach.", "networks")
    ] = ()

    pool_open: Annotated[
        int,
        doc(
            "Maximum PostgreSQL connections in use at once; one more listens for notifications.",
            "connections",
            least=1,
        ),
    ] = 25
    pool_idle: Annotated[
        int, doc("Idle PostgreSQL connections kept open. 0: none.", "connections")
    ] = 5
    pool_lifetime_ms: Annotated[
        int, doc("A PostgreSQL connection is replaced when it is this old.", least=1)
    ] = 300_000
    pool_idle_time_ms: Annotated[int, doc("An idle connection is closed after this.", least=1)] = (
        60_000
    )
    store_wait_ms: Annotated[
        int,
        doc(
            "How long a starting server or worker waits for PostgreSQL to accept connections. 0: "
            "not at all.",
        ),
    ] = 60_000
    notify_interval_ms: Annotated[
        int, doc("A server notifies the others at most this often. 0: at every commit.")
    ] = 5


def outage_ms(config: Config) -> int:
    """Returns how long all servers must be silent before leases are extended.

    This must be shorter than a lease: workers that could not sync meanwhile need the rest of it to
    come back. A short `heartbeat_timeout` therefore limits `heard_gap`.
    """
    lease = config.heartbeat_timeout_ms
    rest = lease - config.heartbeat_interval_ms - LEASE_MARGIN_MS
    return min(config.heard_gap_ms, max(rest, lease // 2))


def health_pause_ms(config: Config) -> int:
    """Returns the interval of the health loop, which must be shorter than an outage."""
    return min(config.health_interval_ms, max(1, outage_ms(config) // 3))


def describe_options() -> list[Option]:
    """Returns every option with its unit, default and meaning, in order of declaration."""
    return describe_fields(Config)


def assemble(values: Mapping[str, object]) -> Config:
    """Builds a configuration from values by option name; the rest have their defaults."""
    top: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name, _, inner = path.rpartition(".")
        (nested.setdefault(name, {}) if name else top)[inner] = value
    default = Config()
    for name, inner_values in nested.items():
        top[name] = replace(getattr(default, name), **inner_values)
    return replace(default, **top)


def validate(config: Config) -> None:
    """Raises `InvalidInput` for the first value that cannot work."""
    check_fields(config)
    _check_lease(config)
    _check_retry(config.retry)
    check_policy(config.access)
    check_http(config.http)
    if config.timeouts.ffmpeg_factor == 0:
        raise InvalidInput("timeouts.ffmpeg_factor", "greater than 0", 0)
    if config.aging_interval_ms > AGING_OFF_INTERVAL_MS:
        limit = shown_ms(AGING_OFF_INTERVAL_MS)
        raise InvalidInput("aging_interval", f"at most {limit}", shown_ms(config.aging_interval_ms))
    parse_networks(config.webhook_networks, "webhook_networks")
    if config.pool_idle > config.pool_open:
        raise InvalidInput("pool_idle", f"at most pool_open ({config.pool_open})", config.pool_idle)


def _check_lease(config: Config) -> None:
    lease = config.heartbeat_timeout_ms
    twice = 2 * config.heartbeat_interval_ms
    if lease < twice:
        expected = f"at least 2 × heartbeat_interval ({shown_ms(twice)})"
        raise InvalidInput("heartbeat_timeout", expected, shown_ms(lease))
    needed = twice + config.term_grace_ms + LEASE_MARGIN_MS
    if lease < needed:
        sum_text = f"2 × heartbeat_interval + term_grace + {shown_ms(LEASE_MARGIN_MS)}"
        expected = f"at least {sum_text} ({shown_ms(needed)})"
        raise InvalidInput("heartbeat_timeout", expected, shown_ms(lease))


def _check_retry(retry: RetryPolicy) -> None:
    if retry.max_backoff_ms < retry.initial_backoff_ms:
        expected = f"at least retry.initial_backoff ({shown_ms(retry.initial_backoff_ms)})"
        raise InvalidInput("retry.max_backoff", expected, shown_ms(retry.max_backoff_ms))
    if retry.jitter > 1:
        raise InvalidInput("retry.jitter", "at most 1", retry.jitter)
