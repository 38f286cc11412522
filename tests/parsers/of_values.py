"""Quantities, times, names, requirements, schedules and options."""

from typing import Any, Final

import msgspec

from tests.parsers.parser import Parser, of_text, round_trip
from windlass.cli.options.configuration import OPTIONS
from windlass.domain.access.rights import parse_role
from windlass.domain.access.secrets import check_secret_name, check_secret_namespace, secret_clauses
from windlass.domain.access.tokens import check_own_token
from windlass.domain.explain.smallest_change import satisfied
from windlass.domain.job.forms import moment_ms
from windlass.domain.job.job import OPTIONS as JOB_OPTIONS
from windlass.domain.job.job import canonical_options
from windlass.domain.lifecycle.rank import LEVEL_LIMIT, parse_priority
from windlass.domain.lifecycle.states import parse_state
from windlass.domain.matching.clauses import (
    Clause,
    canonical_requires,
    parse_clause,
    parse_specifier,
    parse_version,
    satisfies,
)
from windlass.domain.matching.indices import parse_indices
from windlass.domain.matching.matching import mismatches
from windlass.domain.matching.room import parse_offer
from windlass.domain.matching.shapes import Shape
from windlass.domain.pools.pools import describe_pool, parse_pool
from windlass.domain.schedules import Cron
from windlass.domain.values.addresses import is_loopback, parse_networks
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import read_text
from windlass.domain.values.quantities import (
    format_duration,
    format_moment,
    format_size,
    parse_duration_ms,
    parse_moment,
    parse_size,
)
from windlass.domain.webhooks import check_url, may_reach
from windlass.engine.files.log_search import finder
from windlass.operations.events import event_filter
from windlass.operations.parse import moment_since
from windlass.ports.blobs import check_key, check_prefix
from windlass.server.serve import parse_listen

NOW: Final = 1_790_000_000_000
METADATA: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"system:memory": 2**34, "os": ["linux", "x"], "ffmpeg:version": "n6.1-static", "gpus": 2.5},
    {"system:memory": "much", "ffmpeg:version": [7, None, "7.0"], "a": {"b": 1}, "gpus": True},
)


def _clause(text: str) -> None:
    """A clause is the same after it was shown, and can be asked of any metadata."""
    clause = parse_clause(text)
    assert parse_clause(clause.text) == clause, clause
    assert canonical_requires([text, clause]) == (clause,)
    assert clause.needs.isprintable()
    for metadata in METADATA:
        tuple(mismatches("shell", [clause], [], metadata))


def _what_if(text: str) -> None:
    """What `explain` proposes can be said for any clauses."""
    clauses = canonical_requires(text.split(";"))
    shape = Shape("default", "default", "shell", clauses, (("gpus", 2),))
    for metadata in METADATA:
        proposed = satisfied(shape, metadata)
        tuple(mismatches("shell", clauses, shape.resources, {**metadata, **proposed}))


def _structured_clause(data: bytes) -> None:
    value = msgspec.json.decode(data, type=list[Clause])
    for clause in canonical_requires(value):
        assert parse_clause(clause.text) == clause, clause


def _versions(text: str) -> None:
    version, _, specifier = text.partition("~")
    parse_version(version)
    if not satisfies(version, specifier) and parse_specifier(specifier) is None:
        raise InvalidInput("version", "a version condition", specifier)


def _cron(text: str) -> None:
    line, _, zone = text.partition("@@")
    cron = Cron(line, zone or "UTC")
    first = cron.after(NOW)
    assert first is None or (first > NOW and cron.after(first - 1) == first)


def _states(text: str) -> None:
    parse_state(text)
    event_filter([text], [text], None)


def _networks(text: str) -> None:
    networks = parse_networks(text.split(","), "networks")
    for part in text.split(","):
        may_reach(part, networks)


def _option(text: str) -> None:
    name, _, value = text.partition("=")
    option = OPTIONS.get(name) or next(iter(OPTIONS.values()))
    read_text(option, value, option.shown)


def _job_flag(text: str) -> None:
    name, _, value = text.partition("=")
    option = JOB_OPTIONS.get(name)
    if option is not None:
        read = option.form.of_texts(value.split(";") if option.form.repeats else [value], name)
        canonical_options({name: read}, frozenset({name}))


def _job_moment(text: str) -> None:
    canonical = canonical_options({"not_before": text})["not_before"]
    assert canonical_options({"not_before": canonical})["not_before"] == canonical
    moment_ms(canonical)


def _pool(data: bytes) -> None:
    given = msgspec.json.decode(data, type=dict[str, Any])
    pool = parse_pool(given)
    assert parse_pool({k: v for k, v in describe_pool(pool).items() if v is not None}) == pool


def _secret(text: str) -> None:
    check_secret_name(text, "secret")
    check_secret_namespace(text, "namespace")
    for clause in secret_clauses([text], "default", "job"):
        parse_clause(clause)


def _log_search(text: str) -> None:
    for is_regex in (False, True):
        find = finder(text, is_regex, True)
        span = find(b"one\ntwo \xff\n", 0)
        assert span is None or span[0] <= span[1]


def _listen(text: str) -> None:
    host, port = parse_listen(text)
    is_loopback(host)
    assert 0 <= port <= 65_535


def _priority(text: str) -> None:
    assert abs(parse_priority(text)) <= LEVEL_LIMIT


def _size(text: str) -> None:
    parse_size(format_size(parse_size(text)))


def _since(text: str) -> None:
    format_moment(moment_since(text, NOW))


JSON_ERRORS: Final = (InvalidInput, msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

PARSERS: Final = (
    Parser(
        "duration",
        round_trip(parse_duration_ms, format_duration),
        (b"90", b"2m30s", b"1.5h", b"1w2d3h4m5s6ms", b" 500MS ", b"0.001s"),
    ),
    Parser("size", of_text(_size), (b"1024", b"512MiB", b"1.5 gb", b"4GiB", b"0B", b"1PiB")),
    Parser(
        "moment",
        round_trip(lambda text: parse_moment(text, "at"), format_moment),
        (
            b"2026-01-02T12:34:56Z",
            b"2026-01-02T12:34:56.789+02:00",
            b"0001-01-01T00:00:00+23:59",
            b"9999-12-31T23:59:59.999-23:59",
            b"2026-W01-1T00Z",
            b"20260102T123456,5Z",
        ),
    ),
    Parser(
        "since",
        of_text(_since),
        (b"10m", b"2026-01-02T12:34:56Z", b"36525d", b"0001-01-01T00:00:00+01:00"),
    ),
    Parser("priority", of_text(_priority), (b"high", b"-12", b"+1000000", b" Low ", b"0")),
    Parser(
        "clause",
        of_text(_clause),
        (
            b"memory>=4GiB",
            b"ffmpeg:version matches >=5,<7",
            b"os in [linux, darwin]",
            b"gpus != 3.10",
            b"labels has a b",
            b"disk < 1.5TB",
            b"x==-0",
        ),
    ),
    Parser(
        "what if",
        of_text(_what_if),
        (
            b"memory>=4GiB;memory<2GiB",
            b"a matches !=6.*;a matches ==6.*",
            b"gpus>2;gpus!=3",
            b"x in 1,2;x has true",
        ),
    ),
    Parser(
        "clause as JSON",
        _structured_clause,
        (
            b'[{"key":"memory","op":">=","value":4.5e9}]',
            b'[{"key":"a","op":"in","value":[1,"x"]}]',
            b'[{"key":"a","op":"==","value":1e300}]',
        ),
        JSON_ERRORS,
    ),
    Parser(
        "version",
        of_text(_versions),
        (b"1:2.3-4~>=2,<3", b"n6.1~6.*", b"7.0.2-static~!=7.0", b"v1~==1.0.0.0"),
    ),
    Parser(
        "offer",
        of_text(lambda text: parse_offer(text, 8)),
        (
            b"cpus=8,gpus=[0,1],licences=['a','b']",
            b"memory = 4GiB , cpus=[0-7]",
            b"gpus=0,",
            b" " * 2_000 + b"x",
        ),
    ),
    Parser(
        "indices",
        of_text(lambda text: parse_indices(text, "gpus")),
        (b"[0,1]", b"[0-7]", b"['lic-a','lic-b']", b'["0-1"]', b"[0-4095]"),
    ),
    Parser(
        "cron",
        of_text(_cron),
        (
            b"*/15 * * * *",
            b"@daily",
            b"0 2 * * 1-5@@Europe/Berlin",
            b"0 0 29 2 *",
            b"0 0 L * *",
            b"5,10-20/2 0 1 JAN MON#2",
        ),
        floor=2.0,
    ),
    Parser("states", of_text(_states), (b"queued", b"job", b"Active", b"failed", b"dead")),
    Parser(
        "networks", of_text(_networks), (b"10.1.0.0/16,::1", b"64:ff9b::7f00:1", b"fe80::1%eth0/64")
    ),
    Parser(
        "webhook address",
        of_text(lambda text: check_url(text, "url")),
        (
            b"https://example.com/hook?a=b",
            b"http://[::1]:80/",
            b"http://2130706433/",
            b"https://a:65536",
        ),
    ),
    Parser("role", of_text(parse_role), (b"viewer", b"admin", b"worker")),
    Parser(
        "worker token", of_text(check_own_token), (b"wl_" + b"a" * 43, b"wl_", b"wl_" + b"-" * 200)
    ),
    Parser("secret", of_text(_secret), (b"API_KEY", b"WINDLASS_X", b"a/b", b"a,*")),
    Parser(
        "option",
        of_text(_option),
        tuple(f"{name}=10s".encode() for name in list(OPTIONS)[:8])
        + tuple(f"{name}=1,a=2".encode() for name in list(OPTIONS)[8:16]),
    ),
    Parser(
        "job flag",
        of_text(_job_flag),
        (*(f"{name}=a=10/1m;b=2".encode() for name in JOB_OPTIONS), b"limits=a\x80=10"),
    ),
    Parser("job moment", of_text(_job_moment), (b"2030-01-02T03:04:05Z", b"9999-12-31T23:59:59Z")),
    Parser(
        "pool",
        _pool,
        (
            b'{"name":"p","provider":"local","max_workers":3,"target_latency_seconds":30.5}',
            b'{"name":"p","options":{"a":[1]},"resources":{"gpus":2},"hourly_price":0.1,"tags":["x"]}',
        ),
        JSON_ERRORS,
    ),
    Parser("listen", of_text(_listen), (b"127.0.0.1:80", b"[::1]:65535", b":0", "a:²".encode())),
    Parser("blob key", of_text(check_key), (b"logs/1/2.zst", b"a-b/c_d", b"../x")),
    Parser("blob prefix", of_text(check_prefix), (b"a/b/", b"/", b"..")),
    Parser("log search", of_text(_log_search), (b"(a|b)+$", b"[[:alpha:]]{2}", b"(?i)x", b"\\1")),
)
