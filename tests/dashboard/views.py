"""Every view of the dashboard: the tests of accessibility and width and the pictures visit all.

A view that needs something of its own names it in braces: a job that completed, a workflow, a
worker, a pool of the farm that `tests/dashboard/conftest.py` fills.
"""

from typing import Final

VIEWS: Final = {
    "overview": "/",
    "jobs": "/jobs",
    "job": "/jobs/{job}",
    "job-log": "/jobs/{painted}?tab=log",
    "job-time": "/jobs/{job}?tab=time",
    "job-reproduce": "/jobs/{job}?tab=reproduce",
    "job-history": "/jobs/{job}?tab=history",
    "job-waiting": "/jobs/{waiting}",
    "submit": "/submit",
    "submit-filled": "/submit?like={job}",
    "workflows": "/workflows",
    "workflow": "/workflows/{workflow}",
    "workflow-table": "/workflows/{workflow}?table=true",
    "workflow-timeline": "/workflows/{workflow}?tab=timeline",
    "workflow-compare": "/workflows/{run}?tab=compare&with={other}",
    "workers": "/workers",
    "worker": "/workers/{worker}",
    "pools": "/pools",
    "pool": "/pools/spot",
    "queues": "/queues",
    "schedules": "/schedules",
    "templates": "/templates",
    "namespaces": "/namespaces",
    "tokens": "/tokens",
    "audit": "/audit",
    "fuzzing": "/fuzzing?solver={solver}&finding={finding}",
    "fuzzing-statistics": "/fuzzing?solver={solver}&tab=statistics&commit={fuzzed}",
    "questions": "/questions",
}
