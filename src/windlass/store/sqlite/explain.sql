-- What `explain` and the account of a job's time read. Nothing here writes.

-- name: fleet
-- One row a worker, with no more than is needed: there may be ten thousand.
SELECT w.id, w.name, w.status, w.slots, coalesce(held.leases, 0), w.reason, w.static, w.dynamic
FROM workers AS w
LEFT JOIN (SELECT worker, count(*) AS leases FROM leases GROUP BY worker) AS held
    ON held.worker = w.id
ORDER BY w.name;

-- name: ready_before
-- A walk along the primary key up to a place: its cost is the number of rows found.
SELECT count(*) FROM (
    SELECT 1 FROM ready WHERE shape = ?1 AND (rank, job) < (?2, ?3) LIMIT ?4
) AS below;

-- name: holders
-- The leases are few beside the jobs, and walked in the order of their jobs.
SELECT job FROM leases WHERE limit_id = ?1 ORDER BY job LIMIT ?2;

-- name: fleet_events
-- Events about no job stand among the unusual ones, whose condition must be repeated word for word.
SELECT
    seq, at, kind, job, attempt, worker, incarnation, from_state, to_state, reason, actor, data
FROM events
WHERE job = 0 AND seq > ?1 AND seq <= ?2 AND kind IN ({event.worker}, {event.queue}) AND
    CASE from_state
        WHEN {state.new} THEN to_state <> {state.queued}
        WHEN {state.queued} THEN to_state <> {state.assigned}
        WHEN {state.assigned} THEN to_state <> {state.running}
        WHEN {state.running} THEN to_state <> {state.completed}
        ELSE 1
    END
ORDER BY seq LIMIT ?3;
