-- Workers: the statements that only SQLite runs.

-- name: read_workers
-- The columns of Worker, in the order asked for.
SELECT
    w.id, w.name, w.incarnation, w.seq, w.status, w.last_seen, w.last_lease, w.slots,
    w.static, w.dynamic, w.troubles, w.reason, w.enrolled_at
FROM carray(?) AS wanted CROSS JOIN workers AS w ON w.id = wanted.value;

-- name: update_workers
-- Every column of Worker.
UPDATE workers SET
    name = ?2, incarnation = ?3, seq = ?4, status = ?5, last_seen = ?6, last_lease = ?7,
    slots = ?8, static = ?9, dynamic = ?10, troubles = ?11, reason = ?12, enrolled_at = ?13
WHERE id = ?1;

-- name: beat_workers
-- What a sync changes.
UPDATE workers SET seq = ?2, last_seen = ?3, last_lease = ?4 WHERE id = ?1;
