"""What the alert rules and the dashboard ask for is what servers show."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.dashboard import fuzz_bucket
from tests.deploy.files import ALERTS, DASHBOARD, alerts, grouped_by, queries, selectors
from tests.deploy.thresholds import CASES, promtool_files
from tests.server.metrics.test_page import busy, page_of, series_of
from tests.support.debian import find_program, missing_reason
from tests.support.running import run
from tests.support.running_server import running_server
from windlass.server.metrics.catalogue import BY_NAME

OF_PROMETHEUS = {"job", "instance"}  # labels that every series gets from the scrape


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The labels of every series of a busy server, by name."""
    solver = fuzz_bucket.make(tmp_path_factory.mktemp("fuzz"))

    async def scenario() -> str:
        async with running_server(fuzz=(solver,)) as server:
            await busy(server)
            await page_of(server)
            return await page_of(server)

    found: dict[str, set[str]] = {"up": set(), "ALERTS": {"alertname", "alertstate"}}
    for name, labels in series_of(run(scenario())):
        found.setdefault(name, set()).update(labels)
    return found


NOT_STAGED = {"windlass_attempts_lost_total"}


@pytest.mark.parametrize("where", queries())
def test_every_metric_of_a_query_is_shown_with_these_labels(
    where: str, shown: dict[str, set[str]]
) -> None:
    query = queries()[where]
    asked = set(selectors_of(query))
    assert asked or "windlass:" in query
    known = {"le", *OF_PROMETHEUS}
    for name, labels in selectors(query):
        if name in NOT_STAGED:
            shown[name] = set(BY_NAME[name].labels)
        assert name in shown, name
        assert labels <= shown[name] | OF_PROMETHEUS, (name, labels)
        known |= shown[name]
    if "windlass:" not in query:
        assert grouped_by(query) <= known, query


def selectors_of(query: str) -> list[str]:
    return [name for name, _ in selectors(query)]


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert dashboard["uid"] == "windlass"
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert panel["type"] in ("row", "stat", "timeseries")


def test_every_alert_says_what_to_do_and_has_a_severity() -> None:
    for name, rule in alerts().items():
        assert rule["labels"]["severity"] in ("warning", "critical"), name
        assert re.search(
            "`windlass|log|max_seconds|readyz|token", rule["annotations"]["description"]
        )


def test_every_alert_has_a_case_below_and_above_its_threshold() -> None:
    assert {case.alert for case in CASES} == set(alerts())
    assert all(case.quiet for case in CASES)


@pytest.mark.skipif(find_program("promtool") is None, reason=missing_reason("promtool") or "")
def test_alerts_fire_above_their_thresholds_and_not_below(tmp_path: Path) -> None:
    files = map(str, promtool_files(ALERTS, tmp_path))
    command = [find_program("promtool") or "", "test", "rules", *files]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
