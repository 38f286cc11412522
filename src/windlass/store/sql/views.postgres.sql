-- What lists and explanations show: the statements that only PostgreSQL runs.

-- name: scan_jobs
-- Reads a bounded number of rows back from an id; the reader checks whether they match.
SELECT id, shape, state FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2;

-- name: scan_leases
-- The newest jobs under a lease.
SELECT l.job, j.shape, 0
FROM (SELECT job FROM leases WHERE job < $1 ORDER BY job DESC LIMIT $2) AS l
JOIN jobs j ON j.id = l.job ORDER BY l.job DESC;

-- name: scan_due
-- The newest jobs that back off or are suspended, by the partial index.
SELECT job, shape, 0 FROM due WHERE state <> {state.queued} AND job < $1 ORDER BY job DESC LIMIT $2;

-- name: scan_bad
-- The newest jobs that ended badly.
SELECT b.job, j.shape, b.state
FROM (SELECT job, state FROM bad_ends WHERE job < $1 ORDER BY job DESC LIMIT $2) AS b
JOIN jobs j ON j.id = b.job ORDER BY b.job DESC;

-- name: scan_workflow
-- The newest jobs of one workflow, by the partial index.
SELECT id, shape, state FROM jobs WHERE workflow = $3 AND id < $1 ORDER BY id DESC LIMIT $2;

-- name: scan_jobs_up
-- Reads a bounded number of rows forward from an id.
SELECT id, shape, state FROM jobs WHERE id > $1 ORDER BY id LIMIT $2;

-- name: scan_leases_up
-- The oldest jobs under a lease.
SELECT l.job, j.shape, 0
FROM (SELECT job FROM leases WHERE job > $1 ORDER BY job LIMIT $2) AS l
JOIN jobs j ON j.id = l.job ORDER BY l.job;

-- name: scan_due_up
-- The oldest jobs that back off or are suspended, by the partial index.
SELECT job, shape, 0 FROM due WHERE state <> {state.queued} AND job > $1 ORDER BY job LIMIT $2;

-- name: scan_bad_up
-- The oldest jobs that ended badly.
SELECT b.job, j.shape, b.state
FROM (SELECT job, state FROM bad_ends WHERE job > $1 ORDER BY job LIMIT $2) AS b
JOIN jobs j ON j.id = b.job ORDER BY b.job;

-- name: scan_workflow_up
-- The oldest jobs of one workflow, by the partial index.
SELECT id, shape, state FROM jobs WHERE workflow = $3 AND id > $1 ORDER BY id LIMIT $2;

-- name: scan_matching
-- Reads a bounded number of rows back from an id, to the matching ones.
SELECT id, shape, state FROM (
    SELECT id, shape, state FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2
) AS near
WHERE (state = ANY ($4::smallint[]) OR ($5 AND state IS NULL))
    AND ($6::integer[] IS NULL OR shape = ANY ($6::integer[]))
ORDER BY id DESC LIMIT $3;

-- name: scan_matching_up
-- The same forward.
SELECT id, shape, state FROM (
    SELECT id, shape, state FROM jobs WHERE id > $1 ORDER BY id LIMIT $2
) AS near
WHERE (state = ANY ($4::smallint[]) OR ($5 AND state IS NULL))
    AND ($6::integer[] IS NULL OR shape = ANY ($6::integer[]))
ORDER BY id LIMIT $3;

-- name: scan_texts
-- The same, with the fields that filters by time, failure and text look at.
SELECT id, shape, state, created_at, finished_at, coalesce(failure, 0), message, reason, spec FROM (
    SELECT id, shape, state, created_at, finished_at, failure, message, reason, spec FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2
) AS near
WHERE (state = ANY ($4::smallint[]) OR ($5 AND state IS NULL))
    AND ($6::integer[] IS NULL OR shape = ANY ($6::integer[]))
ORDER BY id DESC LIMIT $3;

-- name: scan_texts_up
-- The same forward.
SELECT id, shape, state, created_at, finished_at, coalesce(failure, 0), message, reason, spec FROM (
    SELECT id, shape, state, created_at, finished_at, failure, message, reason, spec FROM jobs WHERE id > $1 ORDER BY id LIMIT $2
) AS near
WHERE (state = ANY ($4::smallint[]) OR ($5 AND state IS NULL))
    AND ($6::integer[] IS NULL OR shape = ANY ($6::integer[]))
ORDER BY id LIMIT $3;

-- name: reach
-- How far such a read goes, if it continues to its end.
SELECT count(*), coalesce(min(id), 0) FROM (
    SELECT id FROM jobs WHERE id < $1 ORDER BY id DESC LIMIT $2
) AS near;

-- name: reach_up
-- The same forward.
SELECT count(*), coalesce(max(id), 0) FROM (
    SELECT id FROM jobs WHERE id > $1 ORDER BY id LIMIT $2
) AS near;

-- name: leases_by_start
-- There are few leases compared with jobs.
SELECT coalesce(started_at, assigned_at) AS since, job FROM leases
WHERE (coalesce(started_at, assigned_at), job) > ($1, $2) ORDER BY since, job LIMIT $3;

-- name: ready_first
-- Reads each shape by the primary key, after a place.
SELECT found.rank, found.job
FROM unnest($1::text::integer[]) AS wanted (shape)
CROSS JOIN LATERAL (
    SELECT r.rank, r.job FROM ready r
    WHERE r.shape = wanted.shape AND (r.rank, r.job) > ($2::bigint, $3::bigint)
    ORDER BY r.rank, r.job LIMIT $4
) AS found
ORDER BY found.rank, found.job LIMIT $4;

-- name: ends_between
-- Reads back along the primary key, between two numbers.
SELECT seq, job FROM each_event
WHERE row_seq >= $1 AND row_seq <= $2 + {events.in_row} AND seq >= $1 AND seq < $2 AND kind = {event.job}
  AND "to" >= {state.completed} AND "to" <> {state.suspended}
ORDER BY row_seq DESC, seq DESC LIMIT $3;

-- name: event_bounds
-- Both ends of the primary key.
SELECT coalesce((SELECT seq FROM each_event ORDER BY row_seq, seq LIMIT 1), 1),
       coalesce(max(seq), 0) FROM events;

-- name: id_behind
-- Bisects the primary key in one round trip, as `JobLists` does step by step.
WITH RECURSIVE search (low, high) AS (
    SELECT 0::bigint, $2::bigint
    UNION ALL
    SELECT CASE WHEN coalesce(seen.created_at, 0) <= $1 THEN seen.middle ELSE search.low END,
           CASE WHEN coalesce(seen.created_at, 0) <= $1 THEN search.high ELSE seen.middle END
    FROM search CROSS JOIN LATERAL (
        SELECT (low + high) / 2 AS middle, (
            SELECT j.created_at FROM jobs j WHERE j.id <= (low + high) / 2
            ORDER BY j.id DESC LIMIT 1
        ) AS created_at
    ) AS seen
    WHERE search.high - search.low > $3
)
SELECT min(high) FROM search;

-- name: event_behind
-- The same in the log.
WITH RECURSIVE search (low, high) AS (
    SELECT $2::bigint, $3::bigint
    UNION ALL
    SELECT CASE WHEN seen.at <= $1 THEN seen.middle ELSE search.low END,
           CASE WHEN seen.at <= $1 THEN search.high ELSE seen.middle END
    FROM search CROSS JOIN LATERAL (
        SELECT (low + high) / 2 AS middle, (
            SELECT e.at FROM events e WHERE e.seq >= (low + high) / 2 ORDER BY e.seq LIMIT 1
        ) AS at
    ) AS seen
    WHERE search.high - search.low > $4
)
SELECT min(high) FROM search;

-- name: job_texts
-- The fields that filters by time, failure and text look at.
SELECT id, created_at, finished_at, coalesce(failure, 0), message, reason, spec
FROM jobs WHERE id = ANY ($1::text::bigint[]);

-- name: light_jobs
-- The columns of a job that a list needs before it reads the job.
SELECT id, shape, state FROM jobs WHERE id = ANY ($1::text::bigint[]) ORDER BY id DESC;

-- name: job_views
-- The columns of JobRecord and of what is shown with it, all by primary keys. One statement, since a
-- page of a list waits for each of them; the limits keep it from reading a whole table.
SELECT j.id, j.shape, j.workflow, j.state, j.flags, j.rank, j.base, j.adjustment, j.age_from,
       j.created_at, j.limit_id, j.timeout_ms, j.idle_ms,
       j.supersedes, j.superseded_by, j.attempt, j.failed, j.lost, j.returned, j.handed_back,
       j.worker, j.incarnation, j.excluded,
       j.assigned_at, j.started_at, j.finished_at,
       coalesce(j.failure, 0), j.exit_code, j.message, j.reason, j.result, j.spec,
       coalesce(
           j.state, l.state, CASE WHEN w.job IS NOT NULL THEN {state.blocked} END, d.state, {state.queued}
       ),
       CASE WHEN w.job IS NOT NULL THEN w.not_before ELSE d.at END, coalesce(now.name, past.name),
       l.job, l.attempt, l.lease, l.worker, l.incarnation, l.state, l.assigned_at, l.started_at,
       l.activity_at, l.deadline_at, l.timeout_ms, l.idle_ms, l.limit_id, l.reason,
       l.queue_limit, coalesce(l.suspicion, 0), l.indices,
       g.job, g.attempt, g.state, g.bytes, g.gap_from, g.gap_to,
       p.job, p.attempt, p.value, p.at,
       y.job, y.attempt, y.body
FROM jobs AS j
LEFT JOIN LATERAL (
    SELECT * FROM leases WHERE leases.job = j.id AND j.state IS NULL LIMIT 1
) AS l ON true
LEFT JOIN LATERAL (
    SELECT job, not_before FROM waits
    WHERE waits.job = j.id AND j.state IS NULL AND l.job IS NULL LIMIT 1
) AS w ON true
LEFT JOIN LATERAL (
    SELECT state, at FROM due WHERE due.job = j.id AND j.state IS NULL AND l.job IS NULL LIMIT 1
) AS d ON true
LEFT JOIN LATERAL (
    SELECT name FROM workers WHERE workers.id = coalesce(l.worker, j.worker) LIMIT 1
) AS now ON true
LEFT JOIN LATERAL (
    SELECT name FROM past_workers
    WHERE past_workers.id = coalesce(l.worker, j.worker) AND now.name IS NULL LIMIT 1
) AS past ON true
LEFT JOIN LATERAL (
    SELECT * FROM logs
    WHERE logs.job = j.id AND logs.attempt = coalesce(l.attempt, j.attempt) LIMIT 1
) AS g ON true
LEFT JOIN LATERAL (
    SELECT * FROM progress
    WHERE progress.job = j.id AND progress.attempt = coalesce(l.attempt, j.attempt) LIMIT 1
) AS p ON true
LEFT JOIN LATERAL (
    SELECT * FROM dynamic
    WHERE dynamic.job = j.id AND dynamic.attempt = coalesce(l.attempt, j.attempt) LIMIT 1
) AS y ON true
WHERE j.id = ANY ($1::text::bigint[]);

-- name: job_moments
-- By primary keys, without the long columns; a blocked job may still have a lease.
SELECT
    j.id,
    coalesce(
        j.state, l.state, CASE WHEN w.job IS NOT NULL THEN {state.blocked} END, d.state, {state.queued}
    ),
    coalesce(l.attempt, j.attempt), coalesce(l.worker, j.worker),
    coalesce(w.manual, 0), coalesce(w.unmet, 0), j.created_at,
    coalesce(l.started_at, j.started_at), j.finished_at
FROM jobs j
LEFT JOIN leases l ON l.job = j.id
LEFT JOIN waits w ON w.job = j.id
LEFT JOIN due d ON d.job = j.id
WHERE j.id = ANY ($1::text::bigint[]) ORDER BY j.id;

-- name: ready_before
-- Reads each shape by the primary key, up to its share of the limit.
SELECT coalesce(sum(found.count), 0)::bigint
FROM unnest($1::text::integer[]) AS wanted (shape)
CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT FROM ready r
        WHERE r.shape = wanted.shape AND (r.rank, r.job) < ($2::bigint, $3::bigint) LIMIT $4
    ) AS before
) AS found;

-- name: ready_within
-- Reads each range by the primary key.
SELECT found.count
FROM unnest($1::text::integer[], $2::text::bigint[], $3::text::bigint[], $4::text::bigint[],
            $5::text::bigint[], $6::text::integer[])
    WITH ORDINALITY AS span (shape, since_rank, since_job, rank, job, most, place)
CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT FROM ready r
        WHERE r.shape = span.shape
            AND (r.rank, r.job) >= (span.since_rank, span.since_job)
            AND (r.rank, r.job) < (span.rank, span.job)
        LIMIT span.most
    ) AS within
) AS found
ORDER BY span.place;

-- name: ready_sample
-- Both ends of a shape's jobs; a job at both ends is returned once.
SELECT
    j.id, CASE WHEN j.failed + j.lost + j.returned = 0 THEN j.age_from END, j.spec
FROM (
    SELECT rank, job FROM (
        SELECT rank, job FROM ready WHERE shape = $1 ORDER BY rank, job LIMIT $2
    ) AS first_ones
    UNION
    SELECT rank, job FROM (
        SELECT rank, job FROM ready WHERE shape = $1 ORDER BY rank DESC, job DESC LIMIT $2
    ) AS last_ones
) AS r JOIN jobs AS j ON j.id = r.job
ORDER BY r.rank, r.job;

-- name: fleet_events
-- Events about no job, by the index on the job.
SELECT seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from", "to",
       reason, actor, data
FROM events WHERE job = 0 AND seq > $1 AND seq <= $2 AND kind IN ({event.worker}, {event.queue}, {event.loop})
    AND jobs IS NULL AND (
    kind <> {event.job} OR "from" * 16 + "to" <> ALL (ARRAY[{transitions.usual}])
)
ORDER BY seq LIMIT $3;

-- name: worker_events
-- Reads back along the primary key; the caller limits the length.
SELECT seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from", "to",
       reason, actor, data
FROM each_event
WHERE row_seq > $1 AND row_seq <= $2 + {events.in_row} AND seq > $1 AND seq <= $2 AND worker = $3
ORDER BY row_seq DESC, seq DESC LIMIT $4;

-- name: pool_events
-- Events about no job, by the index on the job.
SELECT seq, at, kind, job, attempt, coalesce(worker, 0), coalesce(incarnation, 0), "from", "to",
       reason, actor, data
FROM events WHERE job = 0 AND seq > $1 AND seq <= $2 AND kind = {event.pool}
    AND jobs IS NULL AND (
    kind <> {event.job} OR "from" * 16 + "to" <> ALL (ARRAY[{transitions.usual}])
)
ORDER BY seq DESC LIMIT $3;

-- name: census_of_jobs
-- A bounded part of each place; planned jobs count as queued, and kept waits as the job's state.
SELECT shape, state::integer, count(*) FROM (
    SELECT shape, {state.blocked}::smallint AS state FROM (
        SELECT shape FROM waits WHERE manual <> {manual.kept_while_running} LIMIT $1
    ) AS blocked
    UNION ALL
    SELECT shape, state FROM (
        SELECT shape, state FROM due WHERE state <> {state.queued} LIMIT $1
    ) AS later
    UNION ALL
    SELECT j.shape, l.state
    FROM (SELECT job, state FROM leases LIMIT $1) AS l JOIN jobs j ON j.id = l.job
) AS open_jobs GROUP BY shape, state ORDER BY shape, state;

-- name: census_of_workers
-- There are few workers compared with jobs.
SELECT status::integer, count(*), sum(slots)::bigint FROM workers GROUP BY status ORDER BY status;
