"""What a farm is monitored with, and the metrics that its queries name."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MONITORING = Path(__file__).resolve().parents[2] / "src" / "windlass" / "cli" / "farm" / "common"
ALERTS = MONITORING / "alerts.yml"
SCRAPE = MONITORING / "prometheus.yml"
DASHBOARD = MONITORING / "grafana.json"

_SELECTOR = re.compile(r"\b(windlass_\w+|process_\w+|up|ALERTS)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")


def rules() -> list[dict[str, Any]]:
    """Every rule: alerts, and records that they use."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    """The alerts by name."""
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def queries() -> dict[str, str]:
    """Every query of the rules and of the dashboard, by where it is."""
    found = {rule.get("alert") or rule["record"]: rule["expr"] for rule in rules()}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    return found


def selectors(query: str) -> Iterator[tuple[str, set[str]]]:
    """Each metric of a query, and the labels by which it is selected."""
    for name, matchers in _SELECTOR.findall(query):
        yield name, set(_MATCHER.findall(matchers))


def grouped_by(query: str) -> set[str]:
    """The labels by which a query groups or matches."""
    return {label.strip() for group in _GROUPED.findall(query) for label in group.split(",")}
