"""What requests may cost, known before they are carried out.

Sizes of single things (a job, a matrix, a page of a list, a template with its parameters) are
checked where those are read. This is about whole requests.
"""

from typing import Final

# Take many jobs at once: the only JSON bodies that may be large.
BULK: Final = frozenset(
    {
        ("POST", "/api/v1/jobs"),
        (
            "POST",
            "/api/v1/workers/{worker:int}/jobs/{job:int}/attempts/{attempt:int}/jobs",
        ),
    }
)

# Read far more than they answer: each caller has only a few of them at once.
COSTLY: Final = frozenset(
    {
        ("GET", "/api/v1/jobs/{job:int}/explain"),
        ("GET", "/api/v1/jobs/{job:int}/explain/matrix"),
        ("GET", "/api/v1/jobs/{job:int}/time"),
        ("GET", "/api/v1/jobs/{job:int}/log/search"),
        ("GET", "/api/v1/jobs/{job:int}/stack"),
        ("GET", "/api/v1/workers/{worker:int}/explain"),
        ("GET", "/api/v1/attention"),
        ("GET", "/api/v1/pools/plan"),
        ("GET", "/api/v1/workers/{worker:int}/history"),
        ("GET", "/api/v1/workflows/{workflow:int}/graph"),
        ("GET", "/api/v1/workflows/{workflow:int}/timeline"),
        ("GET", "/api/v1/workflows/compare"),
        ("POST", "/api/v1/templates/{name:str}/preview"),
        ("POST", "/api/v1/verify"),
    }
)

ANONYMOUS_BODY: Final = 2 * 2**20  # bytes, of callers without a token
