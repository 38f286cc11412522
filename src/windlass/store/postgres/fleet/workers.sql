-- Workers.

-- name: lock_workers
-- Workers are the first to be locked.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE

-- name: read_workers
-- For reads that decide nothing about the rows.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE id = ANY ($1::text::bigint[]) ORDER BY id

-- name: read_worker_name
-- The same by name.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE name = $1

-- name: lock_worker_name
-- Enrolment knows the name only.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE name = $1 FOR NO KEY UPDATE

-- name: insert_worker
-- Two enrolments of one name at once: the second waits for the first and answers nothing.
INSERT INTO workers (id, name, incarnation, seq, status, last_seen, last_lease, slots, static,
                     dynamic, troubles, reason, enrolled_at)
VALUES (nextval('worker_ids'), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (name) DO NOTHING RETURNING id

-- name: update_workers
-- The lock comes first and in order.
WITH locked AS MATERIALIZED (
    SELECT u.* FROM unnest(
        $1::text::bigint[], $2::text[], $3::text::bigint[], $4::text::bigint[],
        $5::text::smallint[], $6::text::bigint[], $7::text::bigint[], $8::text::integer[],
        $9::text[], $10::text[], $11::text[], $12::text[], $13::text::bigint[]
    ) AS u (id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
            troubles, reason, enrolled_at)
    JOIN workers w ON w.id = u.id ORDER BY w.id FOR UPDATE OF w
)
UPDATE workers w SET
    name = k.name, incarnation = k.incarnation, seq = k.seq, status = k.status,
    last_seen = k.last_seen, last_lease = k.last_lease, slots = k.slots, static = k.static,
    dynamic = k.dynamic, troubles = k.troubles, reason = k.reason, enrolled_at = k.enrolled_at
FROM locked k WHERE w.id = k.id

-- name: beat_workers
-- The lock comes first and in order. No index has these columns, so the update stays in
-- its page.
WITH locked AS MATERIALIZED (
    SELECT w.id, u.seq, u.last_seen, u.last_lease
    FROM unnest($1::text::bigint[], $2::text::bigint[], $3::text::bigint[],
                $4::text::bigint[]) AS u (id, seq, last_seen, last_lease)
    JOIN workers w ON w.id = u.id ORDER BY w.id FOR NO KEY UPDATE OF w
)
UPDATE workers w SET seq = k.seq, last_seen = k.last_seen, last_lease = k.last_lease
FROM locked k WHERE w.id = k.id

-- name: keep_worker_name
-- History goes on naming it.
INSERT INTO past_workers (id, name) SELECT id, name FROM workers WHERE id = $1
ON CONFLICT DO NOTHING

-- name: trim_worker_names
-- Ids rise, so this bounds their number.
DELETE FROM past_workers WHERE id < $1

-- name: remove_worker
-- Its leases become orphans.
DELETE FROM workers WHERE id = $1

-- name: all_workers
-- A fleet is thousands, not millions.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers ORDER BY id

-- name: silent_workers
-- A walk over the fleet by the health loop: an index on last_seen would slow every sync.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE last_seen < $1 AND status = ANY ($2::smallint[]) ORDER BY id

-- name: troubled_workers
-- The same walk.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE troubles IS NOT NULL ORDER BY id

-- name: put_past_metadata
-- Reported again, it counts from its last day.
INSERT INTO past_metadata (worker, digest, until, dynamic) VALUES ($1, $2, $3, $4)
ON CONFLICT (worker, digest) DO UPDATE SET until = excluded.until, dynamic = excluded.dynamic

-- name: trim_past_metadata
-- Some workers report something else at every heartbeat.
DELETE FROM past_metadata WHERE worker = $1 AND (until < $2 OR digest NOT IN (
    SELECT digest FROM past_metadata WHERE worker = $1 ORDER BY until DESC, digest LIMIT $3
))

-- name: past_metadata
-- Of all workers: each has a few.
SELECT worker, digest, until, dynamic FROM past_metadata WHERE until >= $1
ORDER BY worker, digest

-- name: remove_past_metadata
-- Along with the worker.
DELETE FROM past_metadata WHERE worker = $1
