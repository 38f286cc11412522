"""For each alert, series with which it fires and series with which it does not."""

from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

Series = dict[str, str]

LENGTH: Final = 120  # minutes of each series


class Case(NamedTuple):
    """Series by name, one value a minute, with which an alert fires, and with which it does not."""

    alert: str
    fires: Series
    quiet: tuple[Series, ...]
    minute: int = 60  # when it is looked at


def steady(value: float) -> str:
    """The same value all the time."""
    return f"{value}+0x{LENGTH}"


def rising(by: float, start: float = 0) -> str:
    """A value that rises every minute."""
    return f"{start}{by:+}x{LENGTH}"


QUEUE: Final = '{queue="q"}'
TASK: Final = '{queue="q",task="t"}'
FAILED: Final = '{queue="q",task="t",failure="network"}'
LOOP: Final = '{loop="health"}'
POOL: Final = '{pool="p"}'
SOLVER: Final = '{solver="s"}'
HELD: Final = 'windlass_jobs{queue="q",state="running"}'
OLDEST: Final = f"windlass_queue_oldest_job_age_seconds{QUEUE}"
PAUSED: Final = f"windlass_queue_paused{QUEUE}"
STARTED: Final = f"windlass_attempts_started_total{TASK}"
ANSWERS: Final = 'windlass_http_requests_total{{instance="a",status="{}"}}'
ONLINE: Final = 'windlass_workers{status="online"}'

CASES: Final = (
    # Of 100 active jobs, 6 and 4 in ten minutes.
    Case("WindlassHighOrphanRate", {HELD: steady(100), "windlass_orphans_total": rising(0.6)},
         ({HELD: steady(100), "windlass_orphans_total": rising(0.4)},)),
    Case("WindlassHighRetryRate",
         {f"windlass_job_retries_total{FAILED}": rising(21), STARTED: rising(100)},
         ({f"windlass_job_retries_total{FAILED}": rising(19), STARTED: rising(100)},
          {STARTED: steady(0)})),
    Case("WindlassHighFailureRate",
         {f"windlass_jobs_failed_total{FAILED}": rising(11),
          'windlass_jobs_ended_total{queue="q",state="completed"}': rising(89),
          'windlass_jobs_ended_total{queue="q",state="failed"}': rising(11)},
         ({f"windlass_jobs_failed_total{FAILED}": rising(9),
           'windlass_jobs_ended_total{queue="q",state="failed"}': rising(100)},)),
    Case("WindlassStateAnomaly", {"windlass_watchdog_findings_total": f"0+0x50 1+0x{LENGTH}"},
         ({"windlass_watchdog_findings_total": steady(3)},)),
    Case("WindlassLogLost", {"windlass_logs_lost_total": f"0+0x50 1+0x{LENGTH}"},
         ({"windlass_logs_lost_total": steady(3)},)),
    Case("WindlassQueueGrowing", {f"windlass_queue_depth{QUEUE}": rising(10, 101)},
         ({f"windlass_queue_depth{QUEUE}": rising(-1, 500)},
          {f"windlass_queue_depth{QUEUE}": rising(1)},
          {f"windlass_queue_depth{QUEUE}": steady(500)})),
    Case("WindlassQueueStuck", {OLDEST: rising(60), STARTED: steady(7)},
         ({OLDEST: rising(60), STARTED: rising(1)},
          {OLDEST: rising(60), STARTED: steady(7), PAUSED: steady(1)},
          {OLDEST: steady(800)})),
    Case("WindlassOldestJobTooOld", {OLDEST: rising(60), STARTED: rising(1)},
         ({OLDEST: steady(3500)}, {OLDEST: rising(60), PAUSED: steady(1)}), minute=90),
    Case("WindlassNoLiveWorkers", {ONLINE: steady(0), f"windlass_queue_depth{QUEUE}": steady(1)},
         ({ONLINE: steady(1), f"windlass_queue_depth{QUEUE}": steady(1)},
          {ONLINE: steady(0), f"windlass_queue_depth{QUEUE}": steady(0)})),
    Case("WindlassWorkersLost", {"windlass_workers_lost_total": f"0+0x50 2+0x{LENGTH}"},
         ({"windlass_workers_lost_total": f"0+0x58 1+0x{LENGTH}"},
          {"windlass_workers_lost_total": steady(9)})),
    Case("WindlassWorkerOnProbation", {'windlass_workers{status="probation"}': steady(1)},
         ({'windlass_workers{status="probation"}': steady(0), ONLINE: steady(1)},)),
    Case("WindlassPoolOverBudget",
         {f"windlass_pool_used_seconds{POOL}": steady(100),
          f"windlass_pool_budget_seconds{POOL}": steady(100)},
         ({f"windlass_pool_used_seconds{POOL}": steady(99),
           f"windlass_pool_budget_seconds{POOL}": steady(100)},
          {f"windlass_pool_used_seconds{POOL}": steady(99)})),
    Case("WindlassPoolCannotStart", {f"windlass_pool_failed_launches{POOL}": steady(3)},
         ({f"windlass_pool_failed_launches{POOL}": steady(2)},)),
    Case("WindlassServerDown", {'up{job="windlass",instance="a"}': steady(0)},
         ({'up{job="windlass",instance="a"}': steady(1), 'up{job="other"}': steady(0)},)),
    Case("WindlassStoreNotReady", {'windlass_store_ready{instance="a"}': steady(0)},
         ({'windlass_store_ready{instance="a"}': steady(1)},)),
    Case("WindlassServerErrors", {ANSWERS.format(500): rising(6), ANSWERS.format(200): rising(94)},
         ({ANSWERS.format(500): rising(4), ANSWERS.format(404): rising(96)},)),
    # The time of the test starts at 0, and the loop runs every 30 s.
    Case("WindlassLoopStopped",
         {f"windlass_loop_last_run_seconds{LOOP}": steady(0),
          f"windlass_loop_interval_seconds{LOOP}": steady(30)},
         ({f"windlass_loop_last_run_seconds{LOOP}": rising(60),
           f"windlass_loop_interval_seconds{LOOP}": steady(30)},
          {f"windlass_loop_last_run_seconds{LOOP}": steady(0),
           f"windlass_loop_interval_seconds{LOOP}": steady(3600)})),
    Case("WindlassLoopFailing", {f"windlass_loop_failures_total{LOOP}": rising(1)},
         ({f"windlass_loop_failures_total{LOOP}": rising(0.2)},)),
    Case("WindlassFuzzingUnhealthy", {f"windlass_fuzz_unhealthy_commits{SOLVER}": steady(1)},
         ({f"windlass_fuzz_unhealthy_commits{SOLVER}": steady(0)},)),
    # The time of the test starts at 0: a day is over at its end.
    Case("WindlassFuzzingStopped", {f"windlass_fuzz_last_run_seconds{SOLVER}": steady(-86_400)},
         ({f"windlass_fuzz_last_run_seconds{SOLVER}": steady(-80_000)},)),
    Case("WindlassFuzzingUnreadable", {f"windlass_fuzz_readable{SOLVER}": steady(0)},
         ({f"windlass_fuzz_readable{SOLVER}": steady(1)},)),
    Case("WindlassEventLag", {'windlass_event_lag_events{instance="a"}': steady(10001)},
         ({'windlass_event_lag_events{instance="a"}': steady(9999)},)),
)  # fmt: skip


def promtool_files(rules: Path, folder: Path) -> list[Path]:
    """Writes what `promtool test rules` checks: a file for each alert, and its rules beside it.

    With the rules of all alerts it would evaluate each of them in the cases of all others.
    """
    groups = yaml.safe_load(rules.read_text())["groups"]
    return [_write_case(case, groups, folder) for case in CASES]


def _write_case(case: Case, groups: list[dict[str, Any]], folder: Path) -> Path:
    kept = [
        {**group, "rules": [r for r in group["rules"] if r.get("alert", case.alert) == case.alert]}
        for group in groups
    ]
    rules, tests = folder / f"{case.alert}.rules.yml", folder / f"{case.alert}.tests.yml"
    rules.write_text(yaml.safe_dump({"groups": kept}))
    told = [_test(case, case.fires, [{"labels": "{}", "value": 1}])]
    told += [_test(case, quiet, []) for quiet in case.quiet]
    file = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": told}
    tests.write_text(yaml.safe_dump(file))
    return tests


def _test(case: Case, series: Series, expected: list[dict[str, object]]) -> dict[str, object]:
    firing = f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}})'
    looked = {"expr": firing, "eval_time": f"{case.minute}m", "exp_samples": expected}
    return {
        "name": case.alert,
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [looked],
    }
