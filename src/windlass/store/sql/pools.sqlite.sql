-- Pools, their workers and costs: the statements that only SQLite runs.

-- name: update_pool_workers
-- By primary key.
UPDATE pool_workers SET state = ?2, worker = ?3, last_lease = ?4, changed_at = ?5,
    idle_since = ?6, charged_until = ?7, tries = ?8, machine = ?9, reason = ?10
WHERE id = ?1;

-- name: ready_load
-- A loose index scan over the shapes; counts a bounded span of each.
WITH RECURSIVE found (shape) AS (
    SELECT min(shape) FROM ready
    UNION ALL
    SELECT (SELECT min(shape) FROM ready WHERE shape > found.shape)
    FROM found WHERE found.shape IS NOT NULL
)
SELECT shape, (SELECT count(*) FROM (
    SELECT 1 FROM ready AS r WHERE r.shape = found.shape LIMIT ?1
)) FROM found WHERE shape IS NOT NULL;

-- name: ended_spells
-- The events of the last seconds; 3 to 6 are the states of a job that a worker holds.
SELECT
    e.worker, j.shape,
    coalesce(a.started_at, a.assigned_at, o.started_at, o.assigned_at) AS since,
    e.at
FROM events AS e
CROSS JOIN jobs AS j ON j.id = e.job
LEFT JOIN outcomes AS o ON o.job = e.job AND o.attempt = e.attempt
LEFT JOIN attempts AS a ON a.job = e.job AND a.number = e.attempt
WHERE e.seq > ?1 AND e.kind = {event.job} AND e.from_state BETWEEN {state.assigned} AND {state.timed_out} AND e.to_state NOT BETWEEN {state.assigned} AND {state.timed_out}
    AND e.worker IN carray(?2) AND coalesce(a.assigned_at, o.started_at, o.assigned_at) IS NOT NULL
ORDER BY 1, 2, 3, 4;
