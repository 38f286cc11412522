-- Pools, their workers and costs: the statements that only PostgreSQL runs.

-- name: update_pool_workers
-- Under the lock of their pool, all at once, while the locks of its workers are held.
UPDATE pool_workers AS p SET state = u.state, worker = u.worker, last_lease = u.last_lease,
       changed_at = u.changed_at, idle_since = u.idle_since, charged_until = u.charged_until,
       tries = u.tries, machine = u.machine, reason = u.reason
FROM unnest($1::text::bigint[], $2::text::smallint[], $3::text::bigint[], $4::text::bigint[],
            $5::text::bigint[], $6::text::bigint[], $7::text::bigint[], $8::text::integer[],
            $9::text[], $10::text[])
     AS u (id, state, worker, last_lease, changed_at, idle_since, charged_until, tries, machine, reason)
WHERE p.id = u.id;

-- name: ready_load
-- A loose index scan over the shapes; counts a bounded span of each.
WITH RECURSIVE found AS (
    (SELECT shape FROM ready ORDER BY shape LIMIT 1)
    UNION ALL
    SELECT n.shape FROM found f CROSS JOIN LATERAL (
        SELECT shape FROM ready WHERE shape > f.shape ORDER BY shape LIMIT 1
    ) AS n
)
SELECT f.shape, c.count FROM found f CROSS JOIN LATERAL (
    SELECT count(*) FROM (SELECT FROM ready r WHERE r.shape = f.shape LIMIT $1) AS span
) AS c;

-- name: ended_spells
-- The events of the last seconds; 3 to 6 are the states of a job that a worker holds.
-- The last attempt is in the job's row, earlier ones are among the attempts.
SELECT e.worker, j.shape,
       coalesce(t.started_at, t.assigned_at) AS since, e.at
FROM each_event e
JOIN jobs j ON j.id = e.job
CROSS JOIN LATERAL (
    SELECT a.started_at, a.assigned_at FROM attempts a
    WHERE a.job = e.job AND a.number = e.attempt
    UNION ALL
    SELECT j.started_at, j.assigned_at
    WHERE j.attempt = e.attempt AND j.state > {state.retrying}
    LIMIT 1
) AS t
WHERE e.row_seq > $1 AND e.seq > $1 AND e.kind = {event.job} AND e."from" BETWEEN {state.assigned} AND {state.timed_out} AND e."to" NOT BETWEEN {state.assigned} AND {state.timed_out}
    AND e.worker = ANY ($2::text::bigint[]) AND coalesce(t.started_at, t.assigned_at) IS NOT NULL
ORDER BY 1, 2, 3, 4;
