-- Leases: the current attempts.

-- name: overdue_leases
-- Scans all leases, every few seconds: an index would make every claim more expensive.
SELECT job, attempt, lease, worker, incarnation, state, assigned_at, started_at, activity_at,
       deadline_at, timeout_ms, idle_ms, limit_id, reason,
       queue_limit, coalesce(suspicion, 0), indices
FROM leases WHERE state IN ({state.assigned}, {state.running}) AND deadline_at <= $1
ORDER BY deadline_at, job LIMIT $2;

-- name: orphaned_leases
-- Scans all leases, every few seconds.
SELECT l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at,
       l.started_at, l.activity_at, l.deadline_at, l.timeout_ms,
       l.idle_ms, l.limit_id, l.reason, l.queue_limit,
       coalesce(l.suspicion, 0), l.indices
FROM leases l LEFT JOIN workers w ON w.id = l.worker
WHERE w.id IS NULL OR w.incarnation > l.incarnation
ORDER BY l.job LIMIT $1;
