-- Workers: the statements that only PostgreSQL runs.

-- name: lock_workers
-- Workers are locked first.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE id = ANY ($1::text::bigint[]) ORDER BY id FOR NO KEY UPDATE;

-- name: read_workers
-- For reads that base no decision on the rows.
SELECT id, name, incarnation, seq, status, last_seen, last_lease, slots, static, dynamic,
       troubles, reason, enrolled_at
FROM workers WHERE id = ANY ($1::text::bigint[]) ORDER BY id;

-- name: update_workers
-- First locks, in order.
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
FROM locked k WHERE w.id = k.id;

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
FROM locked k WHERE w.id = k.id;
