"""Descriptions of pools: what is refused is named, what is accepted is shown as it was given."""

from pathlib import Path
from typing import Any

import pytest

from windlass.domain.pools.pools import (
    FIELDS,
    HOUR_MS,
    PROVIDERS,
    Pool,
    backoff_ms,
    describe_pool,
    parse_pool,
)
from windlass.domain.values.errors import InvalidInput

MINIMAL = {"name": "p"}


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"name": "Not Good"}, "name", "lower-case letters"),
        ({"name": ""}, "name", "lower-case letters"),
        ({"name": "a" * 41}, "name", "1 to 40"),
        ({}, "name", "such as build-arm64"),
        ({**MINIMAL, "provider": "azure"}, "provider", "one of local, command, ec2"),
        ({**MINIMAL, "min_workers": 3, "max_workers": 2}, "min_workers", r"max_workers \(2\)"),
        ({**MINIMAL, "target_latency_seconds": 0}, "target_latency_seconds", "more than 0"),
        ({**MINIMAL, "target_latency_seconds": "soon"}, "target_latency_seconds", "a duration"),
        ({**MINIMAL, "start_timeout_seconds": 0}, "start_timeout_seconds", "more than 0"),
        ({**MINIMAL, "expected_seconds": 0}, "expected_seconds", "more than 0"),
        ({**MINIMAL, "max_workers": -1}, "max_workers", "from 0 to"),
        ({**MINIMAL, "max_workers": 2.5}, "max_workers", "a whole number"),
        ({**MINIMAL, "slots": 0}, "slots", "from 1 to"),
        ({**MINIMAL, "enabled": "yes"}, "enabled", "true or false"),
        ({**MINIMAL, "tags": "gpu"}, "tags", "a list of names"),
        ({**MINIMAL, "options": ["a"]}, "options", "names with values"),
        ({**MINIMAL, "resources": {"cpus": -1}}, "resources.cpus", "0 or more"),
        ({**MINIMAL, "hourly_price": -1}, "hourly_price", "an amount"),
        ({**MINIMAL, "hourly_price": "cheap"}, "hourly_price", "an amount"),
        ({**MINIMAL, "hourly_price": float("nan")}, "hourly_price", "an amount"),
        ({**MINIMAL, "spot": True}, "spot", "local has no spot machines"),
        ({**MINIMAL, "server": "host:1"}, "server", "an address"),
        ({**MINIMAL, "provider": 3}, "provider", "text"),
        ({**MINIMAL, "wrokers": 3}, "wrokers", "a field of pools, one of name, provider"),
        ({**MINIMAL, "max_worker": 3}, "max_worker", "; did you mean max_workers?"),
        ({**MINIMAL, "metadata": {"x": "y" * 300_000}}, "options", "at most"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(
    given: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as error:
        parse_pool(given)
    assert error.value.field == field


def test_a_description_is_shown_as_it_was_given() -> None:
    given = {
        "name": "build-arm64", "provider": "ec2", "options": {"image": "ami-1"},
        "architectures": ["arm64"], "tags": ["fast"], "metadata": {"zone": "a"}, "slots": 4,
        "resources": {"cpus": 8}, "target_latency_seconds": 90, "max_idle_seconds": 0.5,
        "min_workers": 1, "max_workers": 20, "max_seconds_per_month": 3600, "hourly_price": 0.096,
        "priority": -3, "spot": True, "start_timeout_seconds": 61, "start_cooldown_seconds": 2,
        "failure_cooldown_seconds": 7, "expected_seconds": 12, "server": "https://w.example",
        "enabled": False,
    }  # fmt: skip
    pool = parse_pool(given)
    assert describe_pool(pool) == given
    assert set(given) == set(FIELDS)
    assert parse_pool(describe_pool(pool)) == pool


def test_the_guide_names_every_field_and_provider() -> None:
    guide = (Path(__file__).resolve().parents[3] / "docs" / "guides" / "pools.md").read_text()
    assert [field for field in FIELDS if f"`{field}`" not in guide] == []
    assert [name for name in PROVIDERS if f"**{name}**" not in guide] == []


def test_the_template_says_what_its_workers_will_be() -> None:
    pool = parse_pool(
        {"name": "p", "architectures": ["arm64"], "tags": ["x"], "metadata": {"zone": "a"},
         "resources": {"cpus": 8, "licences": 2}}
    )  # fmt: skip
    assert pool.template() == {
        "zone": "a", "pool:name": "p", "system:architectures": ["arm64"], "tags": ["x"],
        "system:cpus": 8, "resource:licences": 2, "system:shares": True,
    }  # fmt: skip


def test_backing_off_doubles_up_to_an_hour() -> None:
    pool = Pool(name="p", failure_cooldown_ms=1_000)
    assert [backoff_ms(pool, n) for n in (1, 2, 3)] == [1_000, 2_000, 4_000]
    assert backoff_ms(pool, 1_000) == HOUR_MS
