"""The core's options from flags, variables and files: order, names, and what is refused."""

from pathlib import Path

import pytest

from tests.cli.program import Program
from windlass.cli.options.configuration import OPTIONS, load_settings, read_set
from windlass.domain.config import Config
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import Option

DAY_MS = 86_400_000


def another(option: Option) -> object:
    """A value that is not the default, and possible beside the other defaults."""
    if option.is_table:
        return {"batch": 7 * DAY_MS, "live": 1_000}
    if option.unit == "networks":
        return ("10.1.0.0/16", "fd00::/8")
    if option.is_list:
        return ("live", "streams")
    assert isinstance(option.default, int | float)
    return option.default + {"ms": 1_000, "bytes": 1024**2}.get(option.unit, 1)


def in_toml(option: Option, value: object) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f'{name} = "{option.show(one)}"' for name, one in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, tuple):
        return str(list(value))
    return f'"{option.show(value)}"' if option.unit in ("ms", "bytes") else str(value)


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.shown)
def test_every_option_is_set_by_set_variable_and_file(option: Option, tmp_path: Path) -> None:
    value = another(option)
    file = tmp_path / "windlass.toml"
    file.write_text(f"# settings\n{option.shown} = {in_toml(option, value)}\n")
    text = option.show(value)
    for settings, source in (
        (load_settings({option.shown: text}, {}), "--set"),
        (load_settings({}, {option.variable: text}), option.variable),
        (load_settings({}, {}, file), f"{file}:2"),
        (load_settings({}, {"WINDLASS_CONFIG": str(file)}), f"{file}:2"),
    ):
        assert settings.by_name[option.shown].value == value
        assert settings.by_name[option.shown].source == source
        found: object = settings.config
        for name in option.name.split("."):
            found = getattr(found, name)
        assert found == value


def test_nothing_set_is_the_default() -> None:
    settings = load_settings({}, {"WINDLASS_TOKEN": "x", "WINDLASS_POOL_OPEN": ""})
    assert settings.config == Config()
    assert {setting.source for setting in settings.by_name.values()} == {"default"}


def test_set_wins_over_a_variable_and_a_variable_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text("pool_open = 30\npool_idle = 3\nqueue_limit = 5\n")
    variables = {"WINDLASS_POOL_OPEN": "40", "WINDLASS_POOL_IDLE": "4"}
    config = load_settings({"pool_open": "50"}, variables, file).config
    assert (config.pool_open, config.pool_idle, config.queue_limit) == (50, 4, 5)


def test_units_are_understood_and_special_values_kept() -> None:
    variables = {
        "WINDLASS_HEARTBEAT_TIMEOUT": "90",
        "WINDLASS_STALL_TIMEOUT": "15m",
        "WINDLASS_JOB_RETENTION": "6h",
        "WINDLASS_LOG_LIMIT": "512MiB",
        "WINDLASS_CAPABILITY_GRACE": "never",
        "WINDLASS_AGING_INTERVAL": "0",
        "WINDLASS_QUEUE_RETENTION": "batch=7d, live=0",
        "WINDLASS_TIMEOUTS_IDLE_QUEUES": "live, streams",
    }
    config = load_settings({}, variables).config
    assert (config.heartbeat_timeout_ms, config.stall_timeout_ms) == (90_000, 900_000)
    assert (config.job_retention_ms, config.log_limit) == (6 * 3_600_000, 512 * 1024**2)
    assert (config.capability_grace_ms, config.aging_interval_ms) == (None, 0)
    assert config.queue_retention_ms == {"batch": 7 * DAY_MS, "live": 0}
    assert config.timeouts.idle_queues == ("live", "streams")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            '\nheartbeat_intervall = "3s"',
            (
                "toml:2: unknown option heartbeat_i",
                "; did you mean heartbeat_interval?",
            ),
        ),
        (
            "[retry]\nmax_retry = 3",
            (
                "toml:2: unknown option retry.max_retry; ",
                "mean retry.max_retries?",
            ),
        ),
        (
            "[nonsense]\na = 1",
            ("toml:1: unknown option nonsense", "`windlass config`"),
        ),
        ('pool_open = "3"', ("pool_open", "toml:1", "an integer", 'got "3"')),
        ("pool_open = true", ("pool_open", "toml:1", "an integer", "got True")),
        ("retry = 3", ("toml:1: unknown option retry",)),
        ("[retry]\njitter = 'x'", ("retry.jitter", "toml:2", "a number", 'got "x"')),
        ('job_retention = "soon"', ("job_retention", "toml:1", "a duration such as", "soon")),
        ('capability_grace = "soon"', ("capability_grace", "or never", "soon")),
        ('log_limit = "5 parsecs"', ("log_limit", "toml:1", "a size such as", "5 parsecs")),
        ("queue_retention = 3", ("queue_retention", "toml:1", "a table", "got 3")),
        ("[queue_retention]\nbatch = 'x'", ("queue_retention.batch", "toml:2", "got x")),
        ("[timeouts]\nidle_queues = 'live'", ("timeouts.idle_queues", "toml:2", "a list")),
        ("pool_open = 0", ("pool_open", "toml:1", "at least 1", "got 0")),
        ("pool_open =", ("toml", "TOML", "line 1")),
    ],
)
def test_what_is_wrong_in_a_file_is_refused_with_its_line(
    content: str, said: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "windlass.toml"
    file.write_text(content + "\n")
    with pytest.raises(InvalidInput) as refused:
        load_settings({}, {}, file)
    for words in said:
        assert words in str(refused.value)


@pytest.mark.parametrize(
    ("flags", "variables", "said"),
    [
        ({"pool_open": "x"}, {}, ("pool_open (--set)", "an integer", "x")),
        ({}, {"WINDLASS_RETRY_JITTER": "2"}, ("retry.jitter (WINDLASS_RETRY_JITTER)", "at most 1")),
        ({}, {"WINDLASS_POOL_OPENN": "2"}, ("unknown variable", "mean WINDLASS_POOL_OPEN?")),
        ({"queue_retention": "batch"}, {}, ("(--set)", "NAME=VALUE")),
        ({"pool_idle": "-1"}, {}, ("pool_idle (--set)", "at least 0", "-1")),
        (
            {"heartbeat_interval": "60s"},
            {},
            ("heartbeat_timeout (default)", "2 × heartbeat_interval (120 s)",
             "heartbeat_interval is set by --set", "got 90 s"),
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_flag_or_variable_is_refused_by_its_name(
    flags: dict[str, str], variables: dict[str, str], said: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_settings(flags, variables)
    for words in said:
        assert words in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pool_open", "expected --set to be NAME=VALUE, got pool_open"),
        ("pol_open=3", "--set: unknown option pol_open; did you mean pool_open?"),
    ],
)
def test_set_names_an_option_and_its_value(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_set([text])
    assert str(refused.value) == said


@pytest.mark.parametrize("option", OPTIONS.values(), ids=lambda option: option.shown)
def test_a_flag_that_an_option_had_is_refused_with_what_replaces_it(
    option: Option, tmp_path: Path
) -> None:
    done = Program(tmp_path)("config", f"{option.flag}=1")
    said = (
        f"windlass: `windlass config` has no option {option.flag}: set {option.shown} in the "
        f"configuration file (--config), or give --set {option.shown}=VALUE\n"
    )
    assert (done.returncode, done.stderr) == (2, said)


def test_variables_that_others_set_are_let_be() -> None:
    others = {"WINDLASS_PORT": "tcp://10.0.0.1:80", "WINDLASS_SERVICE_HOST": "10.0.0.1"}
    assert load_settings({}, others).config == Config()


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected --config to be a readable file"):
        load_settings({}, {}, tmp_path / "nowhere.toml")
    with pytest.raises(InvalidInput, match="expected WINDLASS_CONFIG to be a readable file"):
        load_settings({}, {"WINDLASS_CONFIG": str(tmp_path)})


def test_config_shows_what_is_in_force_and_who_set_it(tmp_path: Path) -> None:
    program = Program(tmp_path)
    file = tmp_path / "windlass.toml"
    file.write_text('job_retention = "10d"\npool_open = 7\n')
    words = ("config", "--config", str(file), "--set", "queue_retention=batch=7d",
             "--set", "queue_retention=live=1d")  # fmt: skip
    table = program.text(*words, "--changed", WINDLASS_POOL_OPEN="8").splitlines()
    assert [line.split() for line in table] == [
        ["option", "value", "set", "by"],
        ["job_retention", "10d", f"{file}:1"],
        ["queue_retention", "batch=7d,live=1d", "--set"],
        ["pool_open", "8", "WINDLASS_POOL_OPEN"],
    ]
    shown = {entry["name"]: entry for entry in program.json(*words)}
    assert shown.keys() == OPTIONS.keys()
    assert shown["pool_open"] | {"description": ""} == {
        "name": "pool_open", "value": "7", "default": "25", "source": f"{file}:2",
        "unit": "connections", "variable": "WINDLASS_POOL_OPEN", "description": "",
    }  # fmt: skip


def test_wrong_options_are_refused_before_anything_starts(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    place = ("--store", f"sqlite://{tmp_path}/x.db", "--blobs", f"file://{tmp_path}/blobs")
    for words in (("up",), ("server", *place), ("worker", *place)):
        done = program(*words, "--set", "heartbeat_timeout=1s")
        assert done.returncode == 2
        assert "heartbeat_timeout (--set)" in done.stderr
    beside = program("worker", "--set", "heartbeat_timeout=1m")
    assert (beside.returncode, "only with --store" in beside.stderr) == (2, True)
    assert program("server", *place, "--set", "heartbeat_timeot=1s").returncode == 2
    assert list(tmp_path.iterdir()) == []
