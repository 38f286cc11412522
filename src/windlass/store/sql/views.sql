-- What lists and explanations show.

-- name: scan_waits
-- The newest blocked jobs.
SELECT job, shape, 0 FROM waits WHERE job < $1 ORDER BY job DESC LIMIT $2;

-- name: scan_waits_up
-- The oldest blocked jobs.
SELECT job, shape, 0 FROM waits WHERE job > $1 ORDER BY job LIMIT $2;

-- name: created_up_to
-- The nearest row by primary key.
SELECT created_at FROM jobs WHERE id <= $1 ORDER BY id DESC LIMIT 1;

-- name: newest_job
-- By primary key.
SELECT coalesce(max(id), 0) FROM jobs;

-- name: oldest_job
-- By primary key.
SELECT coalesce(min(id), 0) FROM jobs;

-- name: queued_jobs
-- All of them up to a bound, by which a list finds out whether there are few.
SELECT job FROM ready
UNION ALL SELECT job FROM parked
UNION ALL SELECT job FROM due WHERE state = {state.queued}
LIMIT $1;

-- name: jobs_of_key
-- By primary key.
SELECT job FROM keys WHERE namespace = ANY ($1::text[]) AND key = $2;

-- name: standings
-- Blocked, planned and backing-off jobs; the other open ones are queued or leased.
SELECT job, {state.blocked}, not_before FROM waits WHERE job = ANY ($1::text::bigint[])
UNION ALL
SELECT job, state, at FROM due WHERE job = ANY ($1::text::bigint[]);

-- name: worker_names
-- By primary key.
SELECT id, name FROM workers WHERE id = ANY ($1::text::bigint[])
UNION ALL
SELECT id, name FROM past_workers WHERE id = ANY ($1::text::bigint[]);

-- name: lease_counts
-- Along the index on the worker.
SELECT worker, count(*) FROM leases GROUP BY worker;

-- name: fleet
-- One row per worker, with only the columns that are needed: there may be ten thousand.
SELECT w.id, w.name, w.status, w.slots, coalesce(held.leases, 0), w.reason, w.static, w.dynamic
FROM workers AS w
LEFT JOIN (SELECT worker, count(*) AS leases FROM leases GROUP BY worker) AS held
    ON held.worker = w.id
ORDER BY w.name;

-- name: holders
-- There are few leases compared with jobs.
SELECT job FROM leases WHERE limit_id = $1 ORDER BY job LIMIT $2;
