-- The event log and the counters beside it: the statements that only PostgreSQL runs.

-- name: append_events
-- The shared lock is taken before the first number is drawn: the tailer passes a gap only
-- when nobody is left who could fill it. Returns the number of the last event, to find out
-- after a failover whether the commit is still there.
WITH gate AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(1464421956, 1)
), written AS (
    INSERT INTO events (at, kind, job, attempt, worker, incarnation, "from", "to", reason,
                        actor, data)
    SELECT coalesce(u.at, $12), coalesce(u.kind, $13), u.job, coalesce(u.attempt, $14),
           nullif(coalesce(u.worker, $15), 0), nullif(coalesce(u.incarnation, $16), 0),
           coalesce(u."from", $17), coalesce(u."to", $18), coalesce(u.reason, $19),
           coalesce(u.actor, $20), coalesce(u.data, $21)
    FROM gate, unnest($1::text::bigint[], $2::text::bigint[], $3::text::smallint[],
                      $4::text::integer[], $5::text::bigint[], $6::text::bigint[],
                      $7::text::smallint[], $8::text::smallint[], $9::text[], $10::text[],
                      $11::text[])
               AS u (job, at, kind, attempt, worker, incarnation, "from", "to", reason, actor,
                     data)
    RETURNING seq
)
SELECT max(seq) FROM written;

-- name: read_events
-- From a rising bound.
SELECT seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from",
       "to", reason, actor, data
FROM events WHERE seq > $1 ORDER BY seq LIMIT $2;

-- name: events_of_job
-- The history of one job.
SELECT seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from",
       "to", reason, actor, data
FROM events WHERE job = $1 ORDER BY seq;

-- name: bump_counters
-- Appended, so that it meets no other transaction.
INSERT INTO counters (name, value)
SELECT u.name, u.delta FROM unnest($1::text[], $2::text::bigint[]) AS u (name, delta);

-- name: fold_counters
-- Only where there are many rows, and by one server at a time: others would wait for the same rows.
WITH few AS MATERIALIZED (
    SELECT count(*) < 1000 OR NOT pg_try_advisory_xact_lock(1464421956, 6) AS yes FROM counters
), gone AS (
    DELETE FROM counters WHERE NOT (SELECT yes FROM few) RETURNING name, value
)
INSERT INTO counters (name, value)
SELECT name, sum(value) FROM gone GROUP BY name HAVING sum(value) <> 0;

-- name: counters
-- The sum of all changes.
SELECT name, sum(value)::bigint FROM counters GROUP BY name ORDER BY name;

-- name: event_times
-- Also the time of the oldest event: retention has removed everything below it.
SELECT seq, at FROM events WHERE seq = ANY ($1::text::bigint[])
UNION SELECT seq, at FROM (SELECT seq, at FROM events ORDER BY seq LIMIT 1) AS oldest;

-- name: insert_event_at
-- Under its own number. The shared lock is the one of `append_events`.
WITH gate AS MATERIALIZED (
    SELECT pg_advisory_xact_lock_shared(1464421956, 1)
)
INSERT INTO events (seq, at, kind, job, attempt, worker, incarnation, "from", "to", reason, actor,
                    data)
SELECT $1::bigint, $2::bigint, $3::smallint, $4::bigint, $5::integer, nullif($6::bigint, 0),
       nullif($7::bigint, 0), $8::smallint, $9::smallint, $10::text, $11::text, $12::text
FROM gate;
