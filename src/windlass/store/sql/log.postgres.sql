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
FROM each_event WHERE row_seq > $1 AND seq > $1 ORDER BY row_seq, seq LIMIT $2;

-- name: events_near_job
-- Rare events by the partial index, whose condition must be repeated; the others around the times
-- that the job's rows know, up to $2 ms away.
WITH times AS (
    SELECT created_at AS at FROM jobs WHERE id = $1
    UNION SELECT assigned_at FROM jobs WHERE id = $1
    UNION SELECT started_at FROM jobs WHERE id = $1
    UNION SELECT finished_at FROM jobs WHERE id = $1
    UNION SELECT assigned_at FROM leases WHERE job = $1
    UNION SELECT started_at FROM leases WHERE job = $1
    UNION SELECT assigned_at FROM attempts WHERE job = $1
    UNION SELECT started_at FROM attempts WHERE job = $1
), spans AS MATERIALIZED (
    SELECT first_event_since(at - $2) AS first, first_event_since(at + $2 + 1) AS behind
    FROM times WHERE at IS NOT NULL
), found AS MATERIALIZED (
    SELECT e.seq FROM events e
    WHERE e.job = $1 AND e.jobs IS NULL AND (
        e.kind <> {event.job} OR e."from" * 16 + e."to" <> ALL (ARRAY[{transitions.usual}])
    )
    UNION
    SELECT e.seq FROM spans s CROSS JOIN LATERAL (
        SELECT seq FROM events
        WHERE seq >= s.first AND seq < s.behind AND (job = $1 OR $1 = ANY (jobs)) OFFSET 0
    ) AS e
)
SELECT e.seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from",
       "to", reason, actor, data
FROM found f JOIN each_event e ON e.row_seq = f.seq WHERE e.job = $1 ORDER BY e.seq;

-- name: events_of_job
-- Reads the whole log, if nothing else finds them all.
SELECT e.seq, e.at, e.kind, e.job, e.attempt, coalesce(e.worker, 0), coalesce(e.incarnation, 0),
       e."from", e."to", e.reason, e.actor, e.data
FROM events o JOIN each_event e ON e.row_seq = o.seq
WHERE (o.job = $1 OR $1 = ANY (o.jobs)) AND e.job = $1 ORDER BY e.seq;

-- name: job_standing
-- The state of a job that ended or is leased (NULL for one that waits), when it was submitted, and
-- whether its first events may have been removed.
SELECT coalesce(j.state, l.state), e.seq > 1 AND j.created_at <= e.at
FROM jobs j LEFT JOIN leases l ON l.job = j.id AND j.state IS NULL
LEFT JOIN (SELECT seq, at FROM each_event ORDER BY row_seq, seq LIMIT 1) AS e ON true
WHERE j.id = $1;

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
SELECT e.seq, e.at FROM unnest($1::text::bigint[]) AS u (seq) CROSS JOIN LATERAL (
    SELECT seq FROM events WHERE events.seq >= u.seq ORDER BY seq LIMIT 1
) AS r JOIN each_event e ON e.row_seq = r.seq WHERE e.seq = u.seq
UNION
SELECT seq, at FROM (SELECT seq, at FROM each_event ORDER BY row_seq, seq LIMIT 1) AS oldest;

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
