-- What `explain` and the account of a job's time read. Nothing here writes.

-- name: fleet
-- One row a worker, with no more than is needed: there may be ten thousand.
SELECT w.id, w.name, w.status, w.slots, coalesce(held.leases, 0), w.reason, w.static, w.dynamic
FROM workers AS w
LEFT JOIN (SELECT worker, count(*) AS leases FROM leases GROUP BY worker) AS held
    ON held.worker = w.id
ORDER BY w.name

-- name: ready_before
-- Each shape is walked by the primary key as far as its share of the limit reaches.
SELECT coalesce(sum(found.count), 0)::bigint
FROM unnest($1::integer[]) AS wanted (shape)
CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT FROM ready r
        WHERE r.shape = wanted.shape AND (r.rank, r.job) < ($2::bigint, $3::bigint) LIMIT $4
    ) AS before
) AS found

-- name: holders
-- The leases are few beside the jobs.
SELECT job FROM leases WHERE limit_id = $1 ORDER BY job LIMIT $2

-- name: fleet_events
-- Events about no job, by the index on the job.
SELECT seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from", "to",
       reason, actor, data
FROM events WHERE job = 0 AND seq > $1 AND seq <= $2 AND kind IN ({event.worker}, {event.queue}) ORDER BY seq LIMIT $3

-- name: rate_starts
-- By primary key.
SELECT namespace, key, keep, starts FROM rates WHERE namespace = $1 AND key = $2
