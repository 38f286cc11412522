"""Every number has the design's default, documents itself, and refuses what cannot work."""

import msgspec
import pytest
from msgspec.structs import replace

from windlass.domain.config import Config, describe_options, health_pause_ms, outage_ms, validate
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.domain.lifecycle.timeouts import TimeoutPolicy
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import Option

DEFAULT = Config()


def test_the_defaults_are_the_designs() -> None:
    assert (DEFAULT.heartbeat_interval_ms, DEFAULT.heartbeat_timeout_ms) == (30_000, 90_000)
    assert (DEFAULT.term_grace_ms, DEFAULT.drain_limit_ms) == (10_000, 60_000)
    assert DEFAULT.scheduling_interval_ms == 2_000
    assert DEFAULT.health_interval_ms == 5_000
    assert DEFAULT.cleanup_interval_ms == 10_000
    assert (DEFAULT.heard_gap_ms, DEFAULT.stall_timeout_ms) == (15_000, 1_800_000)
    assert (DEFAULT.aging_interval_ms, DEFAULT.capability_grace_ms) == (300_000, 600_000)
    assert (DEFAULT.retry, DEFAULT.timeouts) == (RetryPolicy(), TimeoutPolicy())
    assert (DEFAULT.bad_worker_jobs, DEFAULT.bad_worker_window_ms) == (5, 600_000)
    assert DEFAULT.returned_exclusion_ms == 600_000
    assert (DEFAULT.batch_requests, DEFAULT.batch_bytes) == (1_000, 8 * 1024**2)
    assert (DEFAULT.queue_limit, DEFAULT.chunk_rows) == (10_000, 500)
    assert DEFAULT.payload_limit == DEFAULT.result_limit == 1024**2
    assert DEFAULT.bound_ttl_ms == 30_000
    assert (DEFAULT.pool_open, DEFAULT.pool_idle) == (25, 5)
    assert (DEFAULT.pool_lifetime_ms, DEFAULT.pool_idle_time_ms) == (300_000, 60_000)
    assert DEFAULT.notify_interval_ms == 5


def accepted(config: Config) -> bool:
    validate(config)
    return True


def test_the_defaults_work() -> None:
    assert accepted(DEFAULT)


def refused(config: Config) -> str:
    with pytest.raises(InvalidInput) as caught:
        validate(config)
    return str(caught.value)


def test_a_heartbeat_timeout_under_twice_its_interval_is_refused() -> None:
    assert refused(Config(heartbeat_timeout_ms=45_000)) == (
        "expected heartbeat_timeout to be at least 2 × heartbeat_interval (60 s), got 45 s"
    )


def test_a_lease_that_ends_before_the_agent_has_stopped_is_refused() -> None:
    assert refused(Config(heartbeat_timeout_ms=74_999)) == (
        "expected heartbeat_timeout to be at least "
        "2 × heartbeat_interval + term_grace + 5 s (75 s), got 74.999 s"
    )
    validate(Config(heartbeat_timeout_ms=75_000))
    assert "(105 s)" in refused(Config(term_grace_ms=40_000))


RETRY = RetryPolicy()
TIMEOUTS = TimeoutPolicy()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            Config(retry=replace(RETRY, initial_backoff_ms=-5_000)),
            "expected retry.initial_backoff to be at least 0 s, got -5 s",
        ),
        (
            Config(retry=replace(RETRY, max_backoff_ms=4_000)),
            "expected retry.max_backoff to be at least retry.initial_backoff (5 s), got 4 s",
        ),
        (
            Config(retry=replace(RETRY, jitter=1.5)),
            "expected retry.jitter to be at most 1, got 1.5",
        ),
        (
            Config(retry=replace(RETRY, jitter=-0.1)),
            "expected retry.jitter to be at least 0, got -0.1",
        ),
        (
            Config(retry=replace(RETRY, multiplier=0.5)),
            "expected retry.multiplier to be at least 1, got 0.5",
        ),
        (
            Config(retry=replace(RETRY, multiplier=float("nan"))),
            "expected retry.multiplier to be at least 1, got nan",
        ),
        (
            Config(retry=replace(RETRY, max_retries=-1)),
            "expected retry.max_retries to be at least 0, got -1",
        ),
        (
            Config(timeouts=replace(TIMEOUTS, ffmpeg_factor=0.0)),
            "expected timeouts.ffmpeg_factor to be greater than 0, got 0",
        ),
        (
            Config(timeouts=replace(TIMEOUTS, assigned_ms=0)),
            "expected timeouts.assigned to be at least 0.001 s, got 0 s",
        ),
        (
            Config(capability_grace_ms=-1),
            "expected capability_grace to be at least 0 s, got -0.001 s",
        ),
        (Config(pool_idle=26), "expected pool_idle to be at most pool_open (25), got 26"),
        (Config(pool_open=0), "expected pool_open to be at least 1, got 0"),
        (Config(aging_interval_ms=-1), "expected aging_interval to be at least 0 s, got -0.001 s"),
        (
            Config(aging_interval_ms=2**41 + 1),
            "expected aging_interval to be at most 2.19902e+09 s, got 2.19902e+09 s",
        ),
        (
            Config(stall_timeout_ms=10**5000),
            "expected stall_timeout_ms to be at most 3155760000000, got an integer of 16610 bits",
        ),
        (
            Config(retry=replace(RETRY, multiplier=float("inf"))),
            "expected retry.multiplier to be at most 1000000000, got inf",
        ),
        (
            Config(queue_limit=True),
            "expected queue_limit to be an integer, got True",
        ),
    ],
)
def test_an_impossible_value_is_refused_by_name(config: Config, message: str) -> None:
    assert refused(config) == message


@pytest.mark.parametrize(
    "name",
    [
        "heartbeat_interval_ms",
        "scheduling_interval_ms",
        "health_interval_ms",
        "cleanup_interval_ms",
        "cron_interval_ms",
        "reactions_interval_ms",
        "webhook_timeout_ms",
        "heard_gap_ms",
        "stall_timeout_ms",
        "bad_worker_window_ms",
        "batch_requests",
        "batch_bytes",
        "queue_limit",
        "chunk_rows",
        "payload_limit",
        "result_limit",
        "bound_ttl_ms",
        "pool_lifetime_ms",
        "pool_idle_time_ms",
    ],
)
def test_nothing_that_must_be_positive_may_be_zero(name: str) -> None:
    assert f"expected {name.removesuffix('_ms')} to be at least" in refused(
        replace(DEFAULT, **{name: 0})
    )


@pytest.mark.parametrize("option", describe_options(), ids=lambda option: option.name)
def test_a_number_that_is_none_is_refused_by_name(option: Option) -> None:
    name, _, nested = option.name.partition(".")
    if nested in ("idle_queues", "host_names"):
        return
    value = {nested: "soon"} if nested else "soon"
    inner = replace(getattr(DEFAULT, name), **value) if isinstance(value, dict) else value
    assert f"expected {option.name} to be a" in refused(replace(DEFAULT, **{name: inner}))


@pytest.mark.parametrize("value", ["soon", -1, True, 2**70])
def test_a_table_of_numbers_is_checked_one_by_one(value: object) -> None:
    refusal = refused(replace(DEFAULT, queue_retention_ms={"batch": 5, "live": value}))
    assert "expected queue_retention_ms.live to be a" in refusal


def test_the_special_values_of_the_design_are_accepted() -> None:
    retry = RetryPolicy(max_retries=0, max_lost=0, jitter=1.0, poison_losses=0)
    assert accepted(Config(aging_interval_ms=0))
    assert accepted(Config(capability_grace_ms=0))
    assert accepted(Config(capability_grace_ms=None))
    assert accepted(Config(retry=retry))
    assert accepted(Config(pool_idle=25, notify_interval_ms=0, bad_worker_jobs=0))


def test_a_config_is_read_from_a_file_with_defaults_for_the_rest() -> None:
    config = msgspec.json.decode(b'{"retry": {"max_retries": 5}, "pool_open": 50}', type=Config)
    assert config == Config(retry=RetryPolicy(max_retries=5), pool_open=50)


def test_every_option_documents_unit_default_and_meaning() -> None:
    options = describe_options()
    names = [option.name for option in options]
    assert len(set(names)) == len(names)
    assert {"heartbeat_timeout_ms", "retry.max_retries", "timeouts.idle_queues"} <= set(names)
    for option in options:
        assert option.unit, option
        assert option.description.endswith("."), option
        assert (option.unit == "ms") == option.name.endswith("_ms"), option


def test_an_option_shows_its_default() -> None:
    by_name = {option.name: option for option in describe_options()}
    assert by_name["retry.initial_backoff_ms"].default == 5_000
    assert by_name["timeouts.idle_queues"].default == ("live",)
    assert by_name["capability_grace_ms"].default == 600_000


@pytest.mark.parametrize(
    ("interval", "timeout", "gap", "outage", "pause"),
    [
        (30_000, 90_000, 15_000, 15_000, 5_000),
        (30_000, 90_000, 80_000, 55_000, 5_000),
        (2_000, 14_000, 15_000, 7_000, 2_333),
        (300, 8_000, 15_000, 4_000, 1_333),
    ],
)
def test_an_outage_is_noticed_well_before_a_lease_has_ended(
    interval: int, timeout: int, gap: int, outage: int, pause: int
) -> None:
    config = replace(
        DEFAULT, heartbeat_interval_ms=interval, heartbeat_timeout_ms=timeout, heard_gap_ms=gap,
        term_grace_ms=100,
    )  # fmt: skip
    validate(config)
    assert (outage_ms(config), health_pause_ms(config)) == (outage, pause)
