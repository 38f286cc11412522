"""Rows of pools that are each other's opposite in as many columns as can be."""

from typing import Any

from windlass.domain.pools.pools import CostRow, PoolRow, PoolWorkerRow


def pool(name: str, **changes: Any) -> PoolRow:
    row = PoolRow(
        id=0, name=name, state=1, failures=841, next_at=842, started_at=843, message="no",
        learned="{}", body=b"{}", created_at=844, created_by="ada", updated_at=845,
    )  # fmt: skip
    return row._replace(**changes)


def pool_worker(pool: int, token: str, **changes: Any) -> PoolWorkerRow:
    row = PoolWorkerRow(
        id=0, pool=pool, state=1, worker=851, last_lease=852, requested_at=853, changed_at=854,
        idle_since=855, charged_until=856, tries=857, spot=1, token=token, machine="i-1",
        reason=None,
    )  # fmt: skip
    return row._replace(**changes)


def cost(pool: str, **changes: Any) -> CostRow:
    row = CostRow(pool=pool, month=202611, namespace="team", queue="default", ms=861, micros=862)
    return row._replace(**changes)
